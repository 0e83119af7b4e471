import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, it } from "node:test";

const ROOT = resolve(import.meta.dirname, "../..");

/** The pages that list rules with the tests that hold them, and how many rows each has at least: an empty table proves nothing. */
const PAGES: readonly (readonly [page: string, least: number])[] = [
  ["docs/agent-rules.md", 250],
  ["docs/agent-web-rules.md", 150],
  ["docs/cache-rules.md", 60],
  ["docs/interface-rules.md", 60],
];

/** The name of a test: everything between `it(`, `test(` or `describe(` and its end, as it is written. */
const TITLES = /\b(?:it|test|describe)\(\s*(?:"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g;

interface Row {
  readonly file: string;
  readonly test: string;
}

function rowsOf(markdown: string): Row[] {
  return markdown
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| Rule"))
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .map(([, , file = "", ...rest]) => ({ file, test: rest.slice(0, -1).join("|") }));
}

for (const [page, least] of PAGES) {
  describe(page, () => {
    const rows = rowsOf(readFileSync(join(ROOT, page), "utf8"));

    it("names for each rule a test that exists", () => {
      assert.ok(rows.length > least);
      const titles = new Map<string, string[]>();
      const missing: string[] = [];
      for (const { file, test } of rows) {
        const path = join(ROOT, file.includes("/") ? file : `tests/interop/${file}`);
        assert.ok(existsSync(path), file);
        const known =
          titles.get(path) ??
          [...readFileSync(path, "utf8").matchAll(TITLES)].map(
            ([, plain, template]) => plain ?? template ?? "",
          );
        titles.set(path, known);
        if (test === "" || !known.some((title) => title.includes(test))) missing.push(`${file}: ${test}`);
      }
      assert.deepEqual(missing, []);
    });
  });
}
