import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { AppError, backoffMs, retry, type Clock } from "./index.ts";

function recordingClock(): Clock & { waits: number[] } {
  const waits: number[] = [];
  return {
    waits,
    now: () => 0,
    monotonic: () => 0,
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      waits.push(ms);
    },
  };
}

describe("retry", () => {
  const flaky = new AppError("unavailable", "try again", { remedy: "retry" });

  it("gives the first success and waits longer each time", async () => {
    const clock = recordingClock();
    let calls = 0;
    const result = await retry(
      async () => {
        calls += 1;
        if (calls < 3) throw flaky;
        return "done";
      },
      { clock, jitter: 0 },
    );
    assert.equal(result, "done");
    assert.deepEqual(clock.waits, [200, 400]);
  });

  it("throws the last error when the tries are used up", async () => {
    const clock = recordingClock();
    await assert.rejects(
      retry(() => Promise.reject(flaky), { clock, attempts: 3 }),
      flaky,
    );
    assert.equal(clock.waits.length, 2);
  });

  it("does not retry after a final error", async () => {
    const clock = recordingClock();
    const final = new AppError("denied", "no");
    await assert.rejects(
      retry(() => Promise.reject(final), { clock }),
      final,
    );
    assert.equal(clock.waits.length, 0);
  });

  it("stops when the signal fires", async () => {
    const controller = new AbortController();
    controller.abort();
    await assert.rejects(
      retry(() => Promise.reject(flaky), { signal: controller.signal }),
      flaky,
    );
  });
});

describe("backoffMs", () => {
  it("draws evenly from the share both ways: 400, 500 and 600 ms at 20 % of 500 ms", (t) => {
    // Mocked once: of several mocks of one function, all but the first would stay after the test.
    const random = { drawn: 0 };
    t.mock.method(Math, "random", () => random.drawn);
    for (const [drawn, expected] of [
      [0, 400],
      [0.5, 500],
      [1 - Number.EPSILON, 600],
    ] as const) {
      random.drawn = drawn;
      assert.equal(backoffMs(1, { firstMs: 500, jitter: 0.2 }), expected);
    }
  });

  it("stays within the jitter and the maximum", () => {
    for (let attempt = 1; attempt < 40; attempt++) {
      const ms = backoffMs(attempt, { firstMs: 500, maxMs: 30_000, jitter: 0.2 });
      assert.ok(ms >= 400 && ms <= 30_000, `${attempt}: ${ms}`);
    }
  });
});
