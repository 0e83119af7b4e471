import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { documentFormat } from "@devplat/document-edit";
import { readAll } from "./readers.test-kit.ts";

const folder = mkdtempSync(join(tmpdir(), "ini-"));
after(() => rmSync(folder, { recursive: true }));

test("ini generic: configparser reads a key in another letter case than the template's [agent 14.16]", async () => {
  const format = documentFormat("ini", { dialect: "generic" });
  const before = "[distutils]\nIndex-Servers = pypi\n";
  const { text } = format.edit(before, format.parse("[distutils]\nindex-servers=mine\nNewKey=1\n"));
  const found = await readAll(
    ["index-servers", "newkey"].map((key) => ({ reader: "configparser", text, path: ["distutils", key] })),
    folder,
  );
  assert.deepEqual(found, [{ value: "mine" }, { value: "1" }], text);
});
