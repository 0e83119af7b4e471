import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Timers } from "./timers.ts";

describe("timers of a loop", () => {
  it("run when they are due, also those that others add, unless they are cancelled", () => {
    let nowMs = 0;
    const timers = new Timers(() => nowMs);
    const ran: string[] = [];
    assert.equal(timers.untilNext(), undefined);
    timers.after(30, () => ran.push("late"));
    const cancel = timers.after(10, () => ran.push("cancelled"));
    timers.after(20, () => {
      ran.push("first");
      timers.after(5, () => ran.push("added"));
    });
    assert.equal(timers.untilNext(), 10);
    cancel();
    for (const [ms, expected] of [
      [10, []],
      [19, []],
      [20, ["first"]],
      [24, ["first"]],
      [25, ["first", "added"]],
      [30, ["first", "added", "late"]],
    ] as const) {
      nowMs = ms;
      timers.runDue();
      assert.deepEqual(ran, expected);
    }
    assert.equal(timers.untilNext(), undefined);
  });

  it("wait for the next one after those that ran or were cancelled", () => {
    let nowMs = 0;
    const timers = new Timers(() => nowMs);
    timers.after(10, () => undefined)();
    timers.after(100, () => undefined);
    // The loop may wake up once for the cancelled one.
    nowMs = 10;
    timers.runDue();
    assert.equal(timers.untilNext(), 90);
  });
});
