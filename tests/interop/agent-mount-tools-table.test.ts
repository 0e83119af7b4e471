import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, it } from "node:test";
import { EDITOR_CASES } from "./agent-mount-tools/editor-cases.ts";
import { POSIX_LIMITS } from "./agent-mount-tools/posix-limits.ts";
import { READING_CASES } from "./agent-mount-tools/reading-cases.ts";
import { SAVING_CASES } from "./agent-mount-tools/saving-cases.ts";
import { tableOf, titleOf, type Row } from "./agent-mount-tools/table.ts";

const GUIDE = resolve(import.meta.dirname, "../../docs/agent/mount.md");

describe("docs/agent/mount.md", () => {
  const text = readFileSync(GUIDE, "utf8");
  const tables: readonly (readonly Row[])[] = [
    READING_CASES.map(({ row }) => row),
    [...EDITOR_CASES, ...SAVING_CASES].map(({ row }) => row),
  ];

  it("holds the tables of the programs that are tried", () => {
    for (const table of tables.map(tableOf))
      assert.ok(text.includes(`\n${table}\n`), `the table has to be:\n${table}`);
  });

  it("names the reason of each test of POSIX that does not pass", () => {
    for (const { reason } of POSIX_LIMITS) assert.ok(text.includes(`- ${reason}\n`), reason);
  });

  it("holds no other row, and no test twice", () => {
    const rows = tables.flat();
    const tools = new Set(rows.map(({ tool }) => tool));
    const held = text.split("\n").filter((line) => tools.has(line.split(" | ")[0]?.slice(2) ?? ""));
    assert.equal(held.length, rows.length);
    assert.equal(new Set(rows.map(titleOf)).size, rows.length);
  });
});
