import { readFile } from "node:fs/promises";
import type { Plugin } from "esbuild";

/** Exports of packages whose files the program never uses. `at`: the package's own index. */
const LATE_EXPORTS = [
  // They load `node:https` and `node:cluster`.
  { at: /prom-client\/index\.js$/, names: ["Pushgateway", "AggregatorRegistry"] },
] as const;

/** The named exports are loaded by the first who reads them, as with any other export of the package. */
export const LATE_EXPORTS_OF_PACKAGES: Plugin = {
  name: "late-exports",
  setup: (bundle) => {
    for (const { at, names } of LATE_EXPORTS) {
      bundle.onLoad({ filter: at }, async ({ path }) => {
        let contents = await readFile(path, "utf8");
        for (const name of names) {
          const line = new RegExp(`^exports\\.${name} = (require\\('[^']+'\\));$`, "m");
          if (!line.test(contents)) throw new Error(`${path} does not export ${name} in a line of its own`);
          contents = contents.replace(
            line,
            `Object.defineProperty(exports, "${name}", { enumerable: true, get: () => $1 });`,
          );
        }
        return { contents, loader: "js" };
      });
    }
  },
};
