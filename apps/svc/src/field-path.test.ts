import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fieldPath } from "./field-path.ts";

describe("fieldPath", () => {
  for (const [pointer, expected] of [
    ["", ""],
    ["/name", "name"],
    ["/stats/size_bytes", "stats.size_bytes"],
    ["/refs/refs~1heads~1main", 'refs["refs/heads/main"]'],
    ["/refs/a~01b", 'refs["a~1b"]'],
    ["/refs/", 'refs[""]'],
    ["/refs/__proto__", "refs.__proto__"],
    ["/a.b/0", '["a.b"].0'],
    [`/refs/${"x".repeat(101)}`, `refs.${"x".repeat(100)}…`],
    [`/refs/~1${"x".repeat(101)}`, `refs["/${"x".repeat(99)}…"]`],
    ["/line\nbreak", '["line\\nbreak"]'],
  ] as const) {
    it(`${JSON.stringify(pointer)} is ${expected}`, () => assert.equal(fieldPath(pointer), expected));
  }
});
