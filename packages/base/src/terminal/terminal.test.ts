import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { tableLines, visible, visibleJson } from "./index.ts";

/** Only characters that a terminal shows at the cursor. */
const SAFE = /^[^\p{Cc}\p{Cf}\u2028\u2029]*$/u;

it("visible: control and format characters are shown by number [agent 18.3]", () => {
  assert.equal(
    visible("a\u001b[2J\r\nb\u009bc\u202ed\u2028\u0000\u007f\t"),
    String.raw`a\u{1b}[2J\u{d}\u{a}b\u{9b}c\u{202e}d\u{2028}\u{0}\u{7f}\u{9}`,
  );
  assert.equal(visible("né 日本 😀 a/b:c עברית"), "né 日本 😀 a/b:c עברית");
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => SAFE.test(visible(text))));
});

it("visibleJson: holds no control character, and is the same JSON", () => {
  assert.equal(visibleJson("\u009b\u007f\u202e\u{e0001}"), String.raw`"\u009b\u007f\u202e\udb40\udc01"`);
  assert.equal(visibleJson({ a: ["é"] }, 2), '{\n  "a": [\n    "é"\n  ]\n}');
  fc.assert(
    fc.property(fc.jsonValue(), fc.string({ unit: "binary" }), (value, text) => {
      const given = JSON.stringify([value, text]);
      const shown = visibleJson([value, text], 1);
      assert.deepEqual(JSON.parse(shown), JSON.parse(given));
      return SAFE.test(shown.replaceAll("\n", ""));
    }),
  );
});

it("tableLines: a cell cannot begin a line, and columns fit the shown text", () => {
  const rows = [
    ["x\ny", "1"],
    ["z", "2"],
  ];
  assert.deepEqual(tableLines(["A", "B"], rows), ["A        B", String.raw`x\u{a}y  1`, "z        2"]);
});
