import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { EventQueue } from "./event-queue.ts";
import { Random, zipfSums } from "./random.ts";

describe("the event queue", () => {
  it("returns events by time, and equal times in the order of adding", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 20 })), (times) => {
        const queue = new EventQueue();
        const ran: [time: number, at: number][] = [];
        times.forEach((time, at) => queue.push(time, () => ran.push([time, at])));
        for (let event = queue.pop(); event !== undefined; event = queue.pop()) event.action();
        const expected = times
          .map((time, at): [number, number] => [time, at])
          .toSorted(([one, first], [other, second]) => one - other || first - second);
        assert.deepEqual(ran, expected);
        assert.equal(queue.size, 0);
      }),
    );
  });
});

describe("random numbers", () => {
  it("are the same for the same seed and stream, and others otherwise", () => {
    const take = (seed: number, stream: number): number[] => {
      const random = new Random(seed, stream);
      return Array.from({ length: 5 }, () => random.uniform());
    };
    assert.deepEqual(take(1, 2), take(1, 2));
    assert.notDeepEqual(take(1, 2), take(2, 2));
    assert.notDeepEqual(take(1, 2), take(1, 3));
  });

  it("have the mean of their distribution", () => {
    const random = new Random(3, 0);
    const mean = (next: () => number): number => {
      let sum = 0;
      for (let at = 0; at < 100_000; at++) sum += next();
      return sum / 100_000;
    };
    assert.ok(Math.abs(mean(() => random.exponential(4)) - 4) < 0.1);
    assert.ok(Math.abs(mean(() => random.logNormal(2, 0.5)) - 2 * Math.exp(0.125)) < 0.05);
  });

  it("choose by weight", () => {
    const random = new Random(5, 0);
    const sums = zipfSums(4, 1);
    const counts = [0, 0, 0, 0];
    for (let at = 0; at < 50_000; at++) counts[random.index(sums)]!++;
    const total = 1 + 1 / 2 + 1 / 3 + 1 / 4;
    counts.forEach((count, at) => assert.ok(Math.abs(count / 50_000 - 1 / (at + 1) / total) < 0.01));
  });
});
