import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BodyTurns } from "./body-turns.ts";

const LONG_MS = 600_000;

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
    const turns = new BodyTurns(1, 1);
    const slow = await turns.take();
    const without = await turns.take();
    without();
    // It had no turn, so none was given back.
    const other = new BodyTurns(1, 1);
    await other.take();
    (await other.take())();
    slow();
    (await turns.take())();
  });
});
