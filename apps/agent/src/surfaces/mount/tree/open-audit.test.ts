import assert from "node:assert/strict";
import { realpathSync } from "node:fs";
import { describe, it } from "node:test";
import type { FileOpen } from "../channel/messages.ts";
import { Timers } from "../timers.ts";
import { OpenAudit } from "./open-audit.ts";

const SELF = realpathSync("/proc/self/exe");

function stand(): { audit: OpenAudit; seen: FileOpen[]; pass: (ms: number) => void } {
  let nowMs = 0;
  const timers = new Timers(() => nowMs);
  const seen: FileOpen[] = [];
  const audit = new OpenAudit((open) => seen.push(open), timers);
  return {
    audit,
    seen,
    pass: (ms) => {
      nowMs += ms;
      timers.runDue();
    },
  };
}

describe("the audit of opens", () => {
  it("reports the first open with its program, and counts equal ones for 10 s", () => {
    const { audit, seen, pass } = stand();
    for (let count = 0; count < 5; count++) audit.opened("demo/key.json", process.pid);
    const open = { path: "demo/key.json", pid: process.pid, program: SELF, refused: false };
    assert.deepEqual(seen, [{ ...open, count: 1 }]);
    pass(10_000);
    assert.deepEqual(seen, [
      { ...open, count: 1 },
      { ...open, count: 4 },
    ]);
    audit.opened("demo/key.json", process.pid);
    assert.equal(seen.length, 3);
  });

  it("reports each file by itself, and a process that nobody knows", () => {
    const { audit, seen } = stand();
    audit.opened("a.json", process.pid);
    audit.opened("b.json", 0);
    assert.deepEqual(
      seen.map(({ path, program }) => [path, program]),
      [
        ["a.json", SELF],
        ["b.json", undefined],
      ],
    );
  });

  it("refuses a program that a file does not allow, and reports it", () => {
    const { audit, seen } = stand();
    audit.checkAllowed({ path: "app/.env", allow: undefined }, process.pid);
    audit.checkAllowed({ path: "app/.env", allow: ["/bin/none", SELF] }, process.pid);
    assert.deepEqual(seen, []);
    assert.throws(
      () => audit.checkAllowed({ path: "app/.env", allow: ["/bin/none"] }, process.pid),
      /EACCES/,
    );
    assert.throws(() => audit.checkAllowed({ path: "app/.env", allow: [] }, 0), /EACCES/);
    assert.deepEqual(
      seen.map(({ refused }) => refused),
      [true, true],
    );
  });
});
