import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import type { Clock } from "../clock.ts";
import { LoopMonitor } from "./loop-monitor.ts";

const MAX_WORK_MS = 10_000;
const SLEEP_MS = 5000;

describe("LoopMonitor", () => {
  let now: number;
  let wake: () => void;
  let monitor: LoopMonitor;
  let loop: Clock;
  beforeEach(() => {
    now = 0;
    monitor = new LoopMonitor({
      now: () => now,
      monotonic: () => now,
      sleep: () => new Promise((resolve) => (wake = resolve)),
    });
    loop = monitor.clockOf("audit", MAX_WORK_MS);
  });

  it("finds no fault in a loop that has not begun", () => {
    now = 1e9;
    assert.equal(monitor.fault(), undefined);
  });

  it("finds a turn that does not end, until it ends", async () => {
    const slept = loop.sleep(SLEEP_MS);
    now = SLEEP_MS;
    wake();
    await slept;
    now += MAX_WORK_MS;
    assert.equal(monitor.fault(), undefined);
    now += 1000;
    assert.equal(monitor.fault(), "audit: one turn takes 11 s");
    void loop.sleep(SLEEP_MS);
    assert.equal(monitor.fault(), undefined);
  });

  it("finds a timer that does not fire", () => {
    void loop.sleep(SLEEP_MS);
    now = SLEEP_MS + 60_000;
    assert.equal(monitor.fault(), undefined);
    now += 1000;
    assert.equal(monitor.fault(), "audit: its timer is late by 61 s");
  });

  it("looks at each loop", () => {
    const other = monitor.clockOf("uses", MAX_WORK_MS);
    void loop.sleep(1e9);
    void other.sleep(SLEEP_MS);
    now = SLEEP_MS + 61_000;
    assert.equal(monitor.fault(), "uses: its timer is late by 61 s");
  });
});
