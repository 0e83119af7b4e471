import assert from "node:assert/strict";
import { on } from "node:events";
import { describe, it } from "node:test";
import { Worker } from "node:worker_threads";
import { restsWhileBusy, Urgency } from "./give-way.ts";

/** A thread that works in slices of 10 ms, of which it waits for a CPU as long as `delay` says. */
function thread(delay: number, isUrgent: () => boolean = () => false): { rested: number; slice: () => void } {
  let [now, runDelay] = [0, 0];
  const state = { rested: 0, slice: (): void => undefined };
  const between = restsWhileBusy({
    now: () => now,
    runDelay: () => runDelay,
    isUrgent,
    rest: (ms) => {
      state.rested += ms;
      now += ms;
    },
  });
  state.slice = () => {
    now += 10;
    runDelay += delay;
    between();
  };
  return state;
}

describe("restsWhileBusy", () => {
  it("a thread that always has a CPU does not rest", () => {
    const free = thread(0.1);
    for (let i = 0; i < 100; i++) free.slice();
    assert.equal(free.rested, 0);
  });

  it("a thread on a busy CPU rests much longer than it works, up to a limit [svc 2.14]", () => {
    const busy = thread(5);
    for (let i = 0; i < 10; i++) busy.slice();
    assert.ok(busy.rested > 10 * 10 * 10, `${busy.rested} ms`);
    for (let i = 0; i < 1000; i++) busy.slice();
    const { rested } = busy;
    busy.slice();
    assert.equal(busy.rested, rested);
  });

  it("a thread does not rest while a request waits for its work [svc 2.14]", async () => {
    const urgency = new Urgency();
    const waiting = new Int32Array(urgency.memory);
    const busy = thread(5, () => waiting[0] !== 0);
    const work = Promise.withResolvers<void>();
    const awaited = urgency.during(work.promise);
    busy.slice();
    assert.equal(busy.rested, 0);
    work.resolve();
    await awaited;
    busy.slice();
    assert.notEqual(busy.rested, 0);
  });

  it("a thread that rests continues when the service stops", { timeout: 30_000 }, async () => {
    const urgency = new Urgency();
    const code = `
      const { parentPort, workerData } = require("node:worker_threads");
      parentPort.postMessage("rests");
      parentPort.postMessage(Atomics.wait(new Int32Array(workerData), 0, 0));`;
    const worker = new Worker(code, { eval: true, workerData: urgency.memory });
    const messages = on(worker, "message");
    await messages.next();
    urgency.always();
    const { value } = (await messages.next()) as { value: string[] };
    // "not-equal": it looked after the change.
    assert.match(String(value[0]), /^(?:ok|not-equal)$/);
    await worker.terminate();
  });
});
