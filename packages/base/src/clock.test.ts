import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { TimeLimit, systemClock } from "./clock.ts";

describe("TimeLimit", () => {
  it("fires with a TimeoutError after its time", async () => {
    using limit = new TimeLimit(systemClock, 1);
    await new Promise((resolve) => limit.signal.addEventListener("abort", resolve));
    assert.equal((limit.signal.reason as Error).name, "TimeoutError");
  });

  it("fires with another signal, for the reason of that one", () => {
    const caller = new AbortController();
    using limit = new TimeLimit(systemClock, 3_600_000, caller.signal);
    assert.equal(limit.signal.aborted, false);
    const reason = new Error("the caller has left");
    caller.abort(reason);
    assert.equal(limit.signal.reason, reason);
  });

  it("never fires after its end, and leaves no timer", async () => {
    const timers: AbortSignal[] = [];
    const clock = {
      sleep: async (_: number, signal?: AbortSignal): Promise<void> => {
        timers.push(signal ?? assert.fail());
        await setImmediate();
        signal?.throwIfAborted();
      },
    };
    const limit = new TimeLimit(clock, 1);
    limit[Symbol.dispose]();
    await setImmediate();
    await setImmediate();
    assert.equal(limit.signal.aborted, false);
    assert.equal(timers[0]?.aborted, true);
  });
});
