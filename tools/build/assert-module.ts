import assert from "node:assert";
import type { Plugin } from "esbuild";

/**
 * Source of a module in place of `node:assert`. A load of the real one loads Node's differences of texts and opens stderr:
 * 11 ms of CPU in each start. Only an assertion that fails, or a rarely used function, loads it.
 */
const SOURCE = `
const real = () => process.getBuiltinModule("node:assert");
const assert = (value, message) => {
  if (!value) real()(value, message);
};
const strictEqual = (actual, expected, message) => {
  if (!Object.is(actual, expected)) real().strictEqual(actual, expected, message);
};
for (const name of ${JSON.stringify(Object.keys(assert))}) {
  Object.defineProperty(assert, name, { get: () => real()[name], configurable: true });
}
Object.defineProperty(assert, "ok", { value: assert });
Object.defineProperty(assert, "strictEqual", { value: strictEqual });
module.exports = assert;
`;

/** Bundles load `node:assert` when an assertion fails. */
export const LATE_ASSERT: Plugin = {
  name: "late-assert",
  setup: (bundle) => {
    bundle.onResolve({ filter: /^(node:)?assert$/ }, () => ({ path: "assert", namespace: "late-assert" }));
    bundle.onLoad({ filter: /./, namespace: "late-assert" }, () => ({ contents: SOURCE, loader: "js" }));
  },
};
