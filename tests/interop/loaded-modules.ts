import { writeFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { isMainThread } from "node:worker_threads";

/**
 * For `--import`: at the process's end, writes the address of every file that its main thread loaded as a module to the
 * file that `LOADED_MODULES` names, one a line. Node's own modules are not among them.
 */
const file = process.env["LOADED_MODULES"];
if (isMainThread && file !== undefined) {
  const loaded = new Set<string>();
  registerHooks({
    load(url, context, next) {
      if (!url.startsWith("node:")) loaded.add(url);
      return next(url, context);
    },
  });
  process.on("exit", () => writeFileSync(file, [...loaded].join("\n")));
}
