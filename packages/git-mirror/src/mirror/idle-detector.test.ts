import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import { IdleDetector } from "./idle-detector.ts";

/** Time that passes only during a sleep; `during` is called in the middle of each sleep. */
function fakeClock(during: () => void = () => undefined): Clock {
  let now = 1000;
  return {
    now: () => now,
    monotonic: () => now,
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      now += ms / 2;
      during();
      now += ms / 2;
    },
  };
}

describe("IdleDetector", () => {
  const { signal } = new AbortController();

  it("does not wait for a repository without requests", async () => {
    const clock = fakeClock();
    await new IdleDetector({ clock, idleMs: 50 }).wait("a/b", signal);
    assert.equal(clock.monotonic(), 1000);
  });

  it("waits until the last request for the same repository is long ago", async () => {
    const clock = fakeClock(() => idle.touch("a/other"));
    const idle = new IdleDetector({ clock, idleMs: 50, maxWaitMs: 500 });
    idle.touch("a/b");
    await idle.wait("a/b", signal);
    assert.equal(clock.monotonic(), 1050);
  });

  it("waits no longer than the maximum for a repository that is never idle", async () => {
    const clock = fakeClock(() => idle.touch("a/b"));
    const idle = new IdleDetector({ clock, idleMs: 50, maxWaitMs: 220 });
    idle.touch("a/b");
    await idle.wait("a/b", signal);
    assert.equal(clock.monotonic(), 1220);
  });

  it("ends when the signal fires", async () => {
    const idle = new IdleDetector({ clock: fakeClock(), idleMs: 50 });
    idle.touch("a/b");
    await assert.rejects(idle.wait("a/b", AbortSignal.abort()), { name: "AbortError" });
  });
});
