import assert from "node:assert/strict";
import { it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { batches, inBatches } from "./batches.ts";

const numbers = (count: number): number[] => Array.from({ length: count }, (_, at) => at);

it("batches have 16 items, and the last one has the others", async () => {
  for (const [count, sizes] of [
    [0, []],
    [16, [16]],
    [33, [16, 16, 1]],
  ] as const) {
    const found = await Array.fromAsync(batches(numbers(count)));
    assert.deepEqual(
      found.map(({ length }) => length),
      sizes,
    );
    assert.deepEqual(found.flat(), numbers(count));
  }
});

it("an error ends the work after the actions that have begun", async () => {
  const ended: number[] = [];
  const failing = inBatches(numbers(40), async (item) => {
    if (item === 3) throw new Error("no room");
    await nextTurn();
    ended.push(item);
  });
  await assert.rejects(failing, /no room/);
  assert.deepEqual(
    ended.toSorted((a, b) => a - b),
    numbers(16).filter((item) => item !== 3),
  );
});
