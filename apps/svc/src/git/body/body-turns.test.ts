import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BodyTurns } from "./body-turns.ts";

const LONG_MS = 600_000;
const WAIT_MS = 100;

describe("BodyTurns", () => {
  it("lets the next body in when one is done, in the order in which they came", async () => {
    const turns = new BodyTurns(1, LONG_MS);
    const first = await turns.take();
    const order: number[] = [];
    const others = [1, 2].map(async (number) => {
      const done = await turns.take();
      order.push(number);
      return done;
    });
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(order, []);
    first();
    first();
    const second = await others[0];
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(order, [1]);
    second?.();
    (await others[1])?.();
    (await turns.take())();
  });

  it("slow clients keep nobody out for long", async () => {
    const turns = new BodyTurns(1, WAIT_MS);
    const slow = await turns.take();
    const without = await turns.take();
    without();
    // It had no turn, so none was given back: the next one waits, too.
    const begun = performance.now();
    const late = await turns.take();
    assert.ok(performance.now() - begun >= WAIT_MS - 1);
    late();
    slow();
    const free = performance.now();
    (await turns.take())();
    assert.ok(performance.now() - free < WAIT_MS - 1);
  });
});
