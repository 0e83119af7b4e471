import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { functionsOf } from "./functions.ts";

describe("functionsOf", () => {
  it("names functions of every kind by what is around them", () => {
    const text = `function plain() { return () => 1; }
const arrow = (x) => x, named = function other() {};
holder.late = async function* () {};
var lazy = wrap({ "a/b.ts"() { function inner() {} } });
class Store { #size = 0; free; static kept = 1; constructor() {} get size() { return 1; } #grow() {} static of() {} [Symbol.iterator]() {} }`;
    const functions = functionsOf(text);
    assert.deepEqual(
      [...functions.keys()],
      [
        "plain",
        "plain/()",
        "arrow",
        "other",
        "late",
        "a/b.ts",
        "a/b.ts/inner",
        "Store/{fields}",
        "Store/constructor",
        "Store/get size",
        "Store/#grow",
        "Store/of",
        "Store/iterator",
      ],
    );
    assert.equal(text.slice(0, functions.get("plain")), text.split("\n")[0]);
    assert.ok(text.slice(0, functions.get("Store/{fields}")).endsWith("#size = 0; free"));
  });

  it("numbers functions with one path; names stay when code is added", () => {
    const text = "const a = [() => 1, () => 2]; function b() {}";
    assert.deepEqual([...functionsOf(text).keys()], ["a", "a~2", "b"]);
    assert.deepEqual([...functionsOf(`function c() {} ${text}`).keys()], ["c", "a", "a~2", "b"]);
  });
});
