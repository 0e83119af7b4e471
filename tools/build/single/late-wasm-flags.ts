import { readFile } from "node:fs/promises";
import type { Plugin } from "esbuild";

/** As in svc-launcher.sh, which says why. */
const FLAGS = ["--no-wasm-dynamic-tiering", "--no-wasm-tier-up"];

const PARSER = "function lazyllhttp () {";

/**
 * Sets the engine's flags for WebAssembly where the only such code is compiled: the parser of undici. On the command line they would
 * make V8 refuse the compiled code of Node's own modules, which is for other flags. To compile those again takes some 40 ms of a start.
 */
export const LATE_WASM_FLAGS: Plugin = {
  name: "late-wasm-flags",
  setup: (bundle) => {
    bundle.onLoad({ filter: /undici\/lib\/dispatcher\/client-h1\.js$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const set = FLAGS.map((flag) => `setFlagsFromString("${flag}");`).join(" ");
      const contents = text.replace(
        PARSER,
        `${PARSER}\n  const { setFlagsFromString } = require("node:v8"); ${set}`,
      );
      if (contents === text) throw new Error(`${path} does not compile its parser as expected`);
      return { contents, loader: "js" };
    });
  },
};
