import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import { Quiet } from "./quiet.ts";

/** Time that passes only while somebody sleeps; `meanwhile` is called in the middle of each sleep. */
function fakeClock(meanwhile: () => void = () => undefined): Clock {
  let now = 1000;
  return {
    now: () => now,
    monotonic: () => now,
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      now += ms / 2;
      meanwhile();
      now += ms / 2;
    },
  };
}

describe("Quiet", () => {
  const { signal } = new AbortController();

  it("does not wait for a repository that nobody asked for", async () => {
    const clock = fakeClock();
    await new Quiet({ clock }).wait("a/b", signal);
    assert.equal(clock.monotonic(), 1000);
  });

  it("waits until the time since the last request is long enough; other repositories do not count", async () => {
    const clock = fakeClock(() => quiet.disturb("a/other"));
    const quiet = new Quiet({ clock, quietMs: 50, maxWaitMs: 500 });
    quiet.disturb("a/b");
    await quiet.wait("a/b", signal);
    assert.equal(clock.monotonic(), 1050);
  });

  it("a repository that is never quiet is waited for no longer than the maximum", async () => {
    const clock = fakeClock(() => quiet.disturb("a/b"));
    const quiet = new Quiet({ clock, quietMs: 50, maxWaitMs: 220 });
    quiet.disturb("a/b");
    await quiet.wait("a/b", signal);
    assert.equal(clock.monotonic(), 1220);
  });

  it("ends when the signal fires", async () => {
    const quiet = new Quiet({ clock: fakeClock(), quietMs: 50 });
    quiet.disturb("a/b");
    await assert.rejects(quiet.wait("a/b", AbortSignal.abort()), { name: "AbortError" });
  });
});
