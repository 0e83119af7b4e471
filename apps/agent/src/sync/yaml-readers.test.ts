import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after as afterAll, test } from "node:test";
import { documentFormat, type EditMap, type EditValue } from "@devplat/document-edit";
import { readAll } from "./readers.test-kit.ts";

const folder = mkdtempSync(join(tmpdir(), "yaml-"));
afterAll(() => rmSync(folder, { recursive: true }));

const READERS = ["PyYAML", "ruamel.yaml"];
const yaml = documentFormat("yaml");

/** Holds that both readers find the same value in two texts at a path, and each of the other values in the second. */
async function check(
  cases: readonly {
    before: string;
    after: string;
    path: readonly string[];
    added: readonly (readonly string[])[];
  }[],
): Promise<void> {
  const readings = cases.flatMap(({ before, after, path, added }) =>
    READERS.flatMap((reader) => [
      { reader, text: before, path },
      { reader, text: after, path },
      ...added.map((each) => ({ reader, text: after, path: each })),
    ]),
  );
  const found = await readAll(readings, folder);
  let at = 0;
  for (const { after, added } of cases) {
    for (const reader of READERS) {
      const [before, now, ...others] = found.slice(at, at + 2 + added.length);
      at += 2 + added.length;
      assert.ok(before !== undefined && "value" in before, reader);
      assert.deepEqual(now, before, `${reader}: ${after}`);
      assert.deepEqual(
        others,
        added.map(() => ({ value: "new" })),
        `${reader}: ${after}`,
      );
    }
  }
}

test("yaml edit: a block scalar at the end without a line break keeps its value for other readers", async () => {
  const content: EditMap = new Map<string, EditValue>([
    ["added", "new"],
    ["in", new Map([["more", "new"]])],
  ]);
  const added = [["added"], ["in", "more"]];
  await check(
    ["|", ">", "|+", "|-", "|2", ">-"].flatMap((header) =>
      [
        { before: `a: 1\nscript: ${header}\n  one\n  two`, path: ["script"] },
        { before: `script: ${header}\n  one`, path: ["script"] },
        { before: `a: 1\nin:\n  b: 2\n  # note\n  script: ${header}\n    one`, path: ["in", "script"] },
      ].map(({ before, path }) => ({ before, path, added, after: yaml.edit(before, content).text })),
    ),
  );
});

test("yaml remove: a block scalar that becomes the end of the file keeps its value for other readers", async () => {
  await check(
    ["|", ">", "|-"].map((header) => {
      const before = `script: ${header}\n  one\nours: 1`;
      const after = yaml.edit(before, new Map(), { remove: [["ours"]] }).text;
      assert.ok(!after.includes("ours"));
      return { before, after, path: ["script"], added: [] };
    }),
  );
});
