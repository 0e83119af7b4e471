import assert from "node:assert/strict";
import { it } from "node:test";
import { oneLine } from "./one-line.ts";
import { table } from "./table-text.ts";

it("oneLine: what moves the cursor, recolours or turns text is shown by its number, the rest stays", () => {
  assert.equal(
    oneLine("a\u001b[2J\r\nb\u009bc\u202ed\u2028\u0000"),
    String.raw`a\u{1b}[2J\u{d}\u{a}b\u{9b}c\u{202e}d\u{2028}\u{0}`,
  );
  assert.equal(oneLine("né 日本 😀 a/b:c"), "né 日本 😀 a/b:c");
});

it("table: a cell cannot begin a line of its own", () => {
  assert.deepEqual(table(["A"], [["x\ny"]]), ["A", String.raw`x\u{a}y`]);
});
