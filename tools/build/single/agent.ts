import { dirname, join } from "node:path";
import { build, type BuildOptions, type Metafile } from "esbuild";
import { COMMON, ENGINE_FLAGS, SOURCE, THREADS, bundleOf, threads } from "../agent.ts";
import { assetsInside } from "../assets-inside.ts";
import { narrow } from "../narrow.ts";
import { releaseVersion } from "./release-version.ts";
import type { ProgramBundle } from "./program-bundle.ts";

/**
 * Bundles the daemon for a single executable: everything in one file, and one for each thread.
 *
 * @param folder exists
 */
export async function bundleAgent(folder: string, version: string): Promise<ProgramBundle> {
  const metafiles: Metafile[] = [];
  const assets: Record<string, string> = {};
  const make = async (options: BuildOptions): Promise<void> => {
    const { metafile } = await build({ ...COMMON, ...options, metafile: true });
    metafiles.push(metafile ?? { inputs: {}, outputs: {} });
  };
  for (const { starter, code } of THREADS) {
    const outfile = join(folder, bundleOf(code));
    assets[bundleOf(code)] = outfile;
    await make({ entryPoints: [join(SOURCE, dirname(starter), code)], outfile });
  }
  const main = join(folder, "agent.cjs");
  // A file in the executable has no path on disk: the thread gets its text.
  const start = (name: string): string => `require("node:sea").getAsset("${name}", "utf8"), { eval: true,`;
  await make({
    entryPoints: [join(SOURCE, "login-check.cjs")],
    outfile: main,
    plugins: [assetsInside(), threads(start), releaseVersion(version)],
  });
  await narrow(main);
  return {
    main,
    assets,
    engineFlags: ENGINE_FLAGS,
    nodeFlags: ["--disable-warning=ExperimentalWarning"],
    metafiles,
  };
}
