import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { HandClock } from "./sync/clock.test-kit.ts";
import { IntervalGroup } from "./interval-group.ts";

/** A clock that counts the timers that wait. */
class CountingClock extends HandClock {
  waiting = 0;

  override async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.waiting += 1;
    try {
      await super.sleep(ms, signal);
    } finally {
      this.waiting -= 1;
    }
  }
}

function stand() {
  const clock = new CountingClock();
  const calls: string[] = [];
  const group = new IntervalGroup(1000, clock);
  const add = (name: string): (() => void) => group.add(() => void calls.push(name));
  const pass = async (ms: number): Promise<string[]> => {
    clock.advance(ms);
    // Promises of the timer and of its next wait.
    await setImmediate();
    return calls.splice(0);
  };
  return { clock, group, calls, add, pass };
}

describe("IntervalGroup", () => {
  it("calls all functions at the same moments, from one timer", async () => {
    const { clock, add, pass } = stand();
    add("a");
    assert.deepEqual(await pass(400), []);
    add("b");
    assert.equal(clock.waiting, 1);
    assert.deepEqual(await pass(599), []);
    assert.deepEqual(await pass(1), ["a", "b"]);
    assert.equal(clock.waiting, 1);
    assert.deepEqual(await pass(1000), ["a", "b"]);
  });

  it("has no timer without a function, and begins again with the next one", async () => {
    const { clock, add, pass } = stand();
    const [endA, endB] = [add("a"), add("b")];
    endA();
    endA();
    assert.deepEqual(await pass(1000), ["b"]);
    endB();
    assert.deepEqual(await pass(1000), []);
    assert.equal(clock.waiting, 0);
    add("c");
    assert.deepEqual(await pass(999), []);
    assert.deepEqual(await pass(1), ["c"]);
  });

  it("a function that ends all others is the last one", async () => {
    const { group, calls, add, pass } = stand();
    const ends: (() => void)[] = [];
    ends.push(
      group.add(() => {
        calls.push("first");
        for (const end of ends) end();
      }),
      add("second"),
    );
    assert.deepEqual(await pass(1000), ["first"]);
    assert.deepEqual(await pass(1000), []);
  });
});
