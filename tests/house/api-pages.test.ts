import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { apiPages } from "../../tools/api/pages.ts";
import { ROOT } from "./sources.ts";

describe("API pages of the published packages", () => {
  let pages: Map<string, string>;
  before(async () => {
    pages = await apiPages();
  });

  it("are as the docstrings are", () => {
    const old = [...pages].filter(([path, text]) => readFileSync(join(ROOT, path), "utf8") !== text);
    assert.deepEqual(
      old.map(([path]) => `run npm run api: ${path} is not current`),
      [],
    );
  });

  it("describe every export by a docstring", () => {
    assert.equal(pages.size, 2);
    for (const [path, text] of pages) {
      const exports = text.matchAll(/^### (\w+)\n\n(```)?/gm);
      const found = [...exports].map(([, name, code]) => ({ name, isBare: code !== undefined }));
      assert.ok(found.length > 30, path);
      assert.deepEqual(
        found.filter(({ isBare }) => isBare).map(({ name }) => `${path}: ${name} has no docstring`),
        [],
      );
    }
  });
});
