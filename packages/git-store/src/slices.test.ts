import { test } from "node:test";
import assert from "node:assert/strict";
import { finishInSlices } from "./slices.ts";

/** Longer than a slice, so that each step is a slice of its own. */
function work(): void {
  const end = performance.now() + 5;
  while (performance.now() < end);
}

test("slices of several works take turns, one in each turn of the event loop", async () => {
  let turn = 0;
  let counting = true;
  const count = (): void => {
    turn++;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  const slices: { readonly name: string; readonly turn: number }[] = [];
  function* steps(name: string): Generator<void, void, undefined> {
    for (let i = 0; i < 4; i++) {
      slices.push({ name, turn });
      work();
      yield;
    }
  }
  await Promise.all(["a", "b", "c"].map((name) => finishInSlices(steps(name))));
  counting = false;
  assert.equal(new Set(slices.map((slice) => slice.turn)).size, slices.length);
  // The first work begins before the others wait.
  assert.equal(slices.map(({ name }) => name).join(""), "aabcabcabcbc");
});

test("an aborted signal ends work that waits for its turn", async () => {
  const controller = new AbortController();
  function* steps(): Generator<void, void, undefined> {
    work();
    yield;
    controller.abort(new Error("stopped"));
    work();
    yield;
    assert.fail("a step after the abort");
  }
  await assert.rejects(finishInSlices(steps(), controller.signal), /stopped/);
});
