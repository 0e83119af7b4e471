import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { testSeed } from "@devplat/testkit";
import fc from "fast-check";
import type { FieldValue } from "./contract.ts";
import { JsonError } from "./errors.ts";
import {
  isList,
  isMap,
  isNumber,
  MAX_JSON_DEPTH,
  numberOf,
  parseFields,
  parseJson,
  printJson,
} from "./json.ts";

/** Result of `JSON.parse`. */
function plain(value: FieldValue): unknown {
  if (isNumber(value)) return Number(value.number);
  if (isList(value)) return value.map(plain);
  if (isMap(value)) return Object.fromEntries([...value].map(([key, item]) => [key, plain(item)]));
  return value;
}

describe("parseJson", () => {
  it("keeps numbers as their text [agent 2.4]", () => {
    const text = "[9223372036854775808,1e400,-0,1.10,0.1e+05,-12.5E-3,0,123456789012345678901234567890.5]";
    assert.equal(printJson(parseJson(text)), text);
    assert.deepEqual(parseJson(" 1.10 "), { number: "1.10" });
  });

  it("keeps the order of keys, also of keys that look like numbers", () => {
    const text = '{"b":1,"10":2,"9":3,"a":{"2":0,"1":0}}';
    assert.equal(printJson(parseJson(text)), text);
  });

  it("reads __proto__ and constructor as ordinary keys", () => {
    const text = '{"__proto__":{"polluted":true},"constructor":{"prototype":null}}';
    assert.equal(printJson(parseJson(text)), text);
    assert.ok(!("polluted" in {}));
  });

  it("an object with the key number is an object", () => {
    const value = parseJson('{"number":"1"}');
    assert.ok(isMap(value) && !isNumber(value));
  });

  it("refuses a duplicate key, also with other escapes, and names its place", () => {
    for (const text of ['{"a":1,\n "a":2}', '{"a":1,\n "\\u0061":2}']) {
      assert.throws(
        () => parseJson(text),
        (error: unknown) => error instanceof JsonError && error.line === 2 && error.column === 2,
      );
    }
    assert.throws(() => parseJson('{"o":{"x":1,"x":1}}'), JsonError);
  });

  it("accepts the same key in different objects", () => {
    const text = '[{"a":{"a":1}},{"a":1}]';
    assert.equal(printJson(parseJson(text)), text);
  });

  for (const text of [
    "",
    " ",
    "{",
    "[",
    "]",
    "[1,]",
    "[,1]",
    "{,}",
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    "{a:1}",
    "{'a':1}",
    "01",
    "+1",
    "1.",
    ".5",
    "1e",
    "-",
    "NaN",
    "Infinity",
    "0x1",
    "tru",
    "trueish",
    "nulll",
    '"',
    '"a',
    '"\\',
    '"\\x"',
    '"\\u12g4"',
    '"a\nb"',
    '"\u0000"',
    "1 2",
    "[1 2]",
    "\ufeff1",
    "\u00a01",
    "// c\n1",
  ]) {
    it(`refuses ${JSON.stringify(text)}, as JSON.parse does`, () => {
      assert.throws(() => JSON.parse(text), SyntaxError);
      assert.throws(() => parseJson(text), JsonError);
    });
  }

  it("never quotes the text", () => {
    for (const text of ['{"password":hunter2}', '["hunter2', '{"hunter2":1,"hunter2":2}', "hunter2"]) {
      assert.throws(
        () => parseJson(text),
        (error: unknown) =>
          error instanceof JsonError && !`${error.message}${String(error.cause)}`.includes("hunter2"),
      );
    }
  });

  it("refuses nesting deeper than the limit, without a stack overflow", () => {
    const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
    parseJson(nested(MAX_JSON_DEPTH));
    assert.throws(() => parseJson(nested(MAX_JSON_DEPTH + 1)), JsonError);
    assert.throws(() => parseJson("[".repeat(1_000_000)), JsonError);
    let value: FieldValue = "";
    for (let depth = 0; depth < 100_000; depth++) value = [value];
    assert.throws(() => printJson(value), JsonError);
  });

  it("reads a string of a megabyte", () => {
    const value = 'quote " backslash \\ \u{1f511} '.repeat(40_000);
    assert.equal(parseJson(JSON.stringify(value)), value);
  });

  it("gives the result of JSON.parse, and prints the same text", () => {
    fc.assert(
      fc.property(fc.json({ noUnicodeString: false }), fc.nat(3), (text, indent) => {
        const spaced = JSON.stringify(JSON.parse(text), undefined, indent);
        assert.deepEqual(plain(parseJson(spaced)), JSON.parse(spaced));
        assert.deepEqual(JSON.parse(printJson(parseJson(spaced))), JSON.parse(spaced));
      }),
      { seed: testSeed(), numRuns: 500 },
    );
  });

  it("accepts a damaged text only if JSON.parse does", () => {
    const damaged = fc
      .tuple(
        fc.json(),
        fc.nat(),
        fc.constantFrom("", ",", '"', "}", "]", "\\", "0", "-", "e", ".", " ", "\n", "\0"),
      )
      .map(([text, place, piece]) => {
        const at = place % (text.length + 1);
        return text.slice(0, at) + piece + text.slice(at + (place % 2));
      });
    fc.assert(
      fc.property(damaged, (text) => {
        let valid = true;
        try {
          JSON.parse(text);
        } catch {
          valid = false;
        }
        try {
          parseJson(text);
          assert.ok(valid);
        } catch (error) {
          assert.ok(error instanceof JsonError);
          assert.ok(!valid || error.message.includes("twice"));
        }
      }),
      { seed: testSeed(), numRuns: 2_000 },
    );
  });
});

describe("parseFields", () => {
  it("gives the fields of an object, and refuses any other value", () => {
    assert.deepEqual(parseFields('{"a":null}'), new Map([["a", null]]));
    for (const text of ["[]", "1", '"a"', "null"]) assert.throws(() => parseFields(text), JsonError);
  });
});

describe("printJson", () => {
  it("prints an indent as JSON.stringify does, and numbers as their text", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.integer({ min: 1, max: 8 }), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        assert.equal(printJson(parseJson(text), { indent }), text);
      }),
      { seed: testSeed() },
    );
    assert.equal(
      printJson(parseJson('{"a":[1e400,{}]}'), { indent: 2 }),
      '{\n  "a": [\n    1e400,\n    {}\n  ]\n}',
    );
  });

  it("sorts keys at every depth with sortKeys", () => {
    const value = parseJson('{"b":[{"d":1,"c":2}],"a":3}');
    assert.equal(printJson(value, { sortKeys: true }), '{"a":3,"b":[{"c":2,"d":1}]}');
  });

  it("a number cannot add other content to the document", () => {
    assert.throws(() => printJson(new Map([["a", { number: '1,"b":2' }]])), JsonError);
    assert.throws(() => numberOf("1 "), JsonError);
    assert.deepEqual(numberOf("-0.50e1"), { number: "-0.50e1" });
  });
});
