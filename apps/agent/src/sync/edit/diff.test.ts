import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { maskedDiff } from "./diff.ts";

const mask = (text: string): string => text.replaceAll(/: .*/g, ": ••••");
const diff = (old: string | undefined, next: string | undefined): string =>
  maskedDiff("~/f", { text: old, shown: mask(old ?? "") }, { text: next, shown: mask(next ?? "") });

describe("a masked diff", () => {
  it("shows a changed value as a changed line, and nothing of it", () => {
    const old = "a: 1\nb: 2\nc: 3\nd: 4\ne: 5\nf: 6\n";
    assert.equal(
      diff(old, old.replace("5", "hunter2")),
      "--- ~/f\n+++ ~/f\n@@ -2,5 +2,5 @@\n b: ••••\n c: ••••\n d: ••••\n-e: ••••\n+e: ••••\n f: ••••\n",
    );
  });

  it("is empty for equal texts", () => assert.equal(diff("a: 1\n", "a: 1\n"), ""));

  it("of a new and of a removed file names /dev/null", () => {
    assert.equal(diff(undefined, "a: 1\n"), "--- /dev/null\n+++ ~/f\n@@ -0,0 +1,1 @@\n+a: ••••\n");
    assert.equal(diff("a: 1\n", undefined), "--- ~/f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a: ••••\n");
  });

  it("tells where the last line lacks its newline, as diff -u does", () => {
    const marker = "\\ No newline at end of file\n";
    assert.equal(diff("a: 1\n", "a: 1"), `--- ~/f\n+++ ~/f\n@@ -1,1 +1,1 @@\n-a: ••••\n+a: ••••\n${marker}`);
  });

  it("of large texts that have nothing in common replaces every line", () => {
    const lines = (name: string) => Array.from({ length: 50_000 }, (_, at) => `${name}: ${at}\n`).join("");
    const rows = diff(lines("a"), lines("b")).split("\n");
    assert.equal(rows[2], "@@ -1,50000 +1,50000 @@");
    assert.equal(rows.filter((row) => row === "-a: ••••").length, 50_000);
    assert.equal(rows.filter((row) => row === "+b: ••••").length, 50_000);
  });

  it("applied to the old lines gives the new ones, and never shows a value [agent 6.5]", () => {
    const line = fc.constantFrom("a: secret1", "b: secret2", "c: secret3", "d: secret4");
    fc.assert(
      fc.property(fc.array(line, { maxLength: 30 }), fc.array(line, { maxLength: 30 }), (old, next) => {
        const shown = diff(textOf(old), textOf(next));
        assert.doesNotMatch(shown, /secret/);
        assert.deepEqual(apply(old, shown), next.map(mask));
      }),
    );
  });
});

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}

/** `patch`, on masked lines. */
function apply(old: readonly string[], diffText: string): string[] {
  const result = old.map(mask);
  let shift = 0;
  let at = 0;
  for (const row of diffText.split("\n").slice(2)) {
    const header = /^@@ -(\d+),(\d+)/.exec(row);
    if (header !== null) at = Number(header[1]) - (header[2] === "0" ? 0 : 1) + shift;
    else if (row.startsWith("-")) {
      result.splice(at, 1);
      shift -= 1;
    } else if (row.startsWith("+")) {
      result.splice(at, 0, row.slice(1));
      at += 1;
      shift += 1;
    } else at += 1;
  }
  return result;
}
