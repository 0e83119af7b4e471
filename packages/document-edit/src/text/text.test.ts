import assert from "node:assert/strict";
import { test } from "node:test";
import { documentFormat } from "../index.ts";
import { edit, assertRefuses } from "../../test/editing.test-kit.ts";

const text = documentFormat("text");

test("text edit: the content is the file, byte for byte", () => {
  for (const content of ["", "a", "\uFEFFa\r\nb\0\n", "é\n\n"]) {
    assert.equal(edit("text", "old", content), content);
    assert.equal(edit("text", undefined, content), content);
  }
  assert.deepEqual(text.edit("old", text.parse("new")).managed, [[]]);
  assertRefuses("unsupported", () => text.edit("old", new Map([["key", "x"]])));
});

test("text get: the only leaf is the complete file", () => {
  assert.deepEqual(text.get("all\n", [[], ["a"]]), ["all\n", undefined]);
});

test("text mask: masks every line that is not blank, and keeps all lines", () => {
  assert.equal(text.mask("a b\n\n  c\r\n\td e"), "••••\n\n  ••••\r\n\t••••");
});
