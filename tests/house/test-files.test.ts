import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readSources } from "./sources.ts";

/** An `await` that belongs to no function: the line begins at the margin. */
const TOP_LEVEL_AWAIT = /^(?:(?:export )?(?:const|let) .*= |[\w.[\]]+ = |[}\]].*= |for )?\(*await\b/m;

describe("test files", () => {
  it("finds an await at the top level, and none inside a function", () => {
    for (const text of [
      "await x;",
      "const a = await b();",
      "x\n} = (await b()).c;",
      "for await (const a of b) {",
    ]) {
      assert.match(text, TOP_LEVEL_AWAIT);
    }
    for (const text of ["  await x;", "const a = async () => await b();", "it(name, async () => {"]) {
      assert.doesNotMatch(text, TOP_LEVEL_AWAIT);
    }
  });

  it("those with a process of their own declare all tests before the first runs: the process ends with the last", () => {
    const found = readSources([]).filter(
      ({ path, text }) =>
        path.startsWith("tests/interop/") && path.endsWith(".test.ts") && TOP_LEVEL_AWAIT.test(text),
    );
    assert.deepEqual(
      found.map(({ path }) => path),
      [],
    );
  });
});
