import { relative } from "node:path";
import type { PluginBuild } from "esbuild";
import { ROOT } from "./root.ts";

/**
 * Adds files to the inputs in the metafile of a build, for a plugin that copies them or puts their content into other modules.
 *
 * @returns called with the path of each such file
 */
export function inputRecorder(bundle: PluginBuild): (file: string) => void {
  const files = new Set<string>();
  bundle.onEnd(({ metafile }) => {
    for (const file of files) {
      if (metafile !== undefined) metafile.inputs[relative(ROOT, file)] = { bytes: 0, imports: [] };
    }
  });
  return (file) => void files.add(file);
}
