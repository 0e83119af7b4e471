import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { pollUntil, untilAborted, within } from "./limited-wait.ts";

const LONG_MS = 600_000;

describe("untilAborted", () => {
  it("gives the result or the error of the work", async () => {
    const { signal } = new AbortController();
    assert.equal(await untilAborted(Promise.resolve(1), signal), 1);
    assert.equal(await untilAborted(Promise.resolve(1), undefined), 1);
    await assert.rejects(untilAborted(Promise.reject(new Error("failed")), signal), /failed/);
  });

  it("ends with the reason of the signal, and ignores a later failure", async () => {
    const work = Promise.withResolvers<number>();
    const ended = new AbortController();
    const waiting = untilAborted(work.promise, ended.signal);
    ended.abort(new Error("left"));
    await assert.rejects(waiting, /left/);
    await assert.rejects(untilAborted(work.promise, ended.signal), /left/);
    work.reject(new Error("too late"));
    await assert.rejects(work.promise, /too late/);
  });
});

describe("within", () => {
  it("gives the result or the error of the work, and leaves no timer", async (context) => {
    context.mock.timers.enable({ apis: ["setTimeout"] });
    const cleared = context.mock.method(globalThis, "clearTimeout");
    assert.equal(await within(Promise.resolve(1), LONG_MS), 1);
    await assert.rejects(within(Promise.reject(new Error("failed")), LONG_MS), /failed/);
    assert.equal(cleared.mock.callCount(), 2);
  });

  it("gives undefined when the time is over, and ignores a later failure", async (context) => {
    context.mock.timers.enable({ apis: ["setTimeout"] });
    const work = Promise.withResolvers<number>();
    const waiting = within(work.promise, LONG_MS);
    context.mock.timers.tick(LONG_MS);
    assert.equal(await waiting, undefined);
    // Without a handler this would end the process.
    work.reject(new Error("too late"));
    await new Promise(setImmediate);
  });
});

describe("pollUntil", () => {
  /** A clock that a sleep moves. */
  const clock = () => {
    let now = 0;
    return {
      monotonic: () => now,
      sleep: async (ms: number) => void (now += ms),
    };
  };
  const options = { limitMs: 1000, intervalMs: 200 };

  it("gives what is as wanted, without a wait for the first look", async () => {
    const time = clock();
    let looks = 0;
    const look = async () => ++looks;
    assert.equal(await pollUntil(look, (seen) => seen > 0, { ...options, clock: time }), 1);
    assert.equal(time.monotonic(), 0);
    assert.equal(await pollUntil(look, (seen) => seen > 3, { ...options, clock: time }), 4);
    assert.equal(time.monotonic(), 400);
  });

  it("gives the last thing seen when the time is over", async () => {
    const time = clock();
    let looks = 0;
    const seen = await pollUntil(
      async () => ++looks,
      () => false,
      { ...options, clock: time },
    );
    assert.deepEqual([seen, time.monotonic()], [6, 1000]);
  });

  it("ends with the error of a look", async () => {
    const look = async (): Promise<never> => Promise.reject(new Error("failed"));
    await assert.rejects(
      pollUntil(look, () => true, options),
      /failed/,
    );
  });
});
