import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readSources } from "./sources.ts";

/** An `await` that belongs to no function: the line begins at the margin. */
const TOP_LEVEL_AWAIT = /^(?:(?:export )?(?:const|let) .*= |[\w.[\]]+ = |[}\]].*= |for )?\(*await\b/m;

/** Helpers that fail when what they wait for does not come; others say in their name that they assert or expect. */
const WAITERS = ["until", "waitFor"];
const ASSERTION = new RegExp(String.raw`\b(?:(?:assert|expect)\w*(?:\.\w+)?|${WAITERS.join("|")})\(`);
const QUOTED = /"(?:[^"\\\n]|\\.)*"/g;

/** Line and text of each test, by the indentation that oxfmt gives it. */
function testsOf(text: string): { line: number; body: string }[] {
  const lines = text.split("\n");
  return lines.flatMap((first, line) => {
    const indent = /^( *)(?:it|test|t\.test)(?:\.\w+)?\(/.exec(first)?.[1];
    if (indent === undefined) return [];
    // It ends where it began, or one step further in: the only expression of an arrow function.
    const last = new RegExp(
      first.endsWith("=>") ? `^${indent}  \\S.*;$` : `^${indent}(?:it|test|t\\.|[})]).*;$`,
    );
    const length = lines.slice(line).findIndex((each) => last.test(each)) + 1;
    return [{ line: line + 1, body: lines.slice(line, line + length).join("\n") }];
  });
}

const asserts = (body: string): boolean => ASSERTION.test(body.replaceAll(QUOTED, '""'));

describe("test files", () => {
  it("finds tests without a visible assertion, of one line and of many", () => {
    const text = [
      'it("assert(x)", () => call());',
      'it("a", () => assert.ok(x));',
      "  it.each(",
      "    name, async () => {",
      "      await stand.assertHit(x);",
      "    },",
      "  );",
      "  for (const a of b) {",
      "    test(`${a}`, async () => {",
      "      const file = `;",
      "text;",
      "`;",
      "      call(file);",
      "    });",
      "    assert.ok(a);",
      "  }",
      '  test("b", () => until(() => true));',
      'it("c", () =>',
      "  assert.ok(x));",
    ].join("\n");
    const found = testsOf(text);
    assert.deepEqual(
      found.map(({ line }) => line),
      [1, 2, 3, 9, 17, 18],
    );
    assert.deepEqual(
      found.filter(({ body }) => !asserts(body)).map(({ line }) => line),
      [1, 9],
    );
  });

  it("have an assertion in each test, or a helper with a name of an assertion", () => {
    const tests = readSources([])
      .filter(({ path }) => path.endsWith(".test.ts"))
      .flatMap(({ path, text }) => testsOf(text).map((test) => ({ path, ...test })));
    assert.ok(tests.length > 1000, `${tests.length} tests were found`);
    assert.deepEqual(
      tests.filter(({ body }) => !asserts(body)).map(({ path, line }) => `${path}:${line}`),
      [],
    );
  });

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

  it("test files with their own process declare all tests before the first one runs", () => {
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
