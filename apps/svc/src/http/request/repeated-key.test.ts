import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { repeatedKey } from "./repeated-key.ts";

it("repeatedKey: a repeated key is found at any depth, in any notation", () => {
  const rows: [text: string, pointer: string | undefined][] = [
    ['{"a":1,"a":2}', "/a"],
    ['{"a":1,"\\u0061":2}', "/a"],
    ['{"a":{"b":1,"c":2,"b":3}}', "/a/b"],
    ['{"a":[{"b":1},{"b":1,"b":1}]}', "/a/1/b"],
    ['[[],["x",{"":0,"":0}]]', "/1/1/"],
    ['{"a/b~":1,"a/b~":2}', "/a~1b~0"],
    ['{"__proto__":1,"__proto__":2}', "/__proto__"],
    ['{"a":{"k":1},"b":{"k":1},"k":["k","k","\\"k\\":1,"]}', undefined],
    ['{"a":"\\\\","b":"\\"a\\""}', undefined],
    ["[]", undefined],
    ['"a"', undefined],
    [`${"[".repeat(50_000)}${"]".repeat(50_000)}`, undefined],
  ];
  for (const [text, pointer] of rows) assert.equal(repeatedKey(text), pointer, text.slice(0, 60));
});

it("repeatedKey: no document that JSON.stringify writes has one", () => {
  fc.assert(fc.property(fc.json(), (text) => repeatedKey(JSON.stringify(JSON.parse(text))) === undefined));
});
