import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Plugin } from "esbuild";
import { inputRecorder } from "./record-inputs.ts";

/** Files that pages serve, as data URLs in place of `new URL(…, import.meta.url)`: a bundle has no folder of its own. */
export function assetsInside(): Plugin {
  const reference = /new URL\((?:"([^"]+)", import\.meta\.url|import\.meta\.resolve\("([^"]+)"\))\)/g;
  return {
    name: "assets-inside",
    setup: (bundle) => {
      const recordInput = inputRecorder(bundle);
      bundle.onLoad(
        {
          filter:
            /(?:web-kit\/src\/assets|service\/systemd\/unit-files|seed-client\/script|web\/pages\/layout|admin-ui\/common\/layout)\.ts$/,
        },
        async ({ path }) => {
          const text = await readFile(path, "utf8");
          const files = new Map<string, string>();
          for (const [whole, beside, packaged] of text.matchAll(reference)) {
            const from = pathToFileURL(path);
            const file =
              beside === undefined
                ? createRequire(from).resolve(packaged ?? "")
                : fileURLToPath(new URL(beside, from));
            recordInput(file);
            files.set(whole, (await readFile(file)).toString("base64"));
          }
          const contents = text.replace(
            reference,
            (whole) => `new URL("data:;base64,${files.get(whole) ?? ""}")`,
          );
          return { contents, loader: "ts" };
        },
      );
    },
  };
}
