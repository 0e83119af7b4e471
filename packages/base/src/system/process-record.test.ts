import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, it } from "node:test";
import fc from "fast-check";
import { isStillRunning, parseStat, readProcess } from "./process-record.ts";

describe("isStillRunning", () => {
  it("is true until the process ends, and false for another one with its id", async () => {
    const child = spawn("sleep", ["600"], { stdio: "ignore" });
    const record = await readProcess(child.pid ?? 0);
    assert.ok(record !== undefined);
    assert.equal(record.parent, process.pid);
    assert.equal(await isStillRunning(record), true);
    assert.equal(await isStillRunning({ ...record, startTime: "1" }), false);
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
    assert.equal(await isStillRunning(record), false);
  });
});

describe("parseStat", () => {
  const stat = (name: string, fields: string): string => `7 (${name}) ${fields}`;
  const FIELDS = "S 5 7 6 34816 7 4194304 1 0 0 0 0 0 0 0 20 0 1 0 90312 3133440 396";

  it("reads parent, session and start time, also after a hostile name", () => {
    for (const name of ["ssh", "a) S 1 1 1 0 0 (b", "", "x\ny"]) {
      assert.deepEqual(parseStat(7, stat(name, FIELDS), "/bin/x"), {
        pid: 7,
        startTime: "90312",
        name,
        program: "/bin/x",
        parent: 5,
        session: 6,
        isBackground: false,
        isZombie: false,
      });
    }
  });

  it("tells the background from the foreground of a terminal", () => {
    const other = FIELDS.replace("34816 7", "34816 9");
    assert.equal(parseStat(7, stat("x", other), undefined)?.isBackground, true);
    assert.equal(parseStat(7, stat("x", FIELDS.replace("34816 7", "0 -1")), undefined)?.isBackground, true);
  });

  it("tells a process that has ended", () => {
    assert.equal(parseStat(7, stat("x", FIELDS.replace("S", "Z")), undefined)?.isZombie, true);
  });

  it("gives undefined for any other text", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const record = parseStat(1, text, undefined);
        assert.ok(record === undefined || /^\d+$/.test(record.startTime));
      }),
    );
  });
});
