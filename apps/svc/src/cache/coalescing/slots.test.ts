import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { UpstreamSlots } from "./slots.ts";

describe("UpstreamSlots", () => {
  const WAIT_MS = 60_000;
  const never = new AbortController().signal;

  it("give two turns per repository, in order, and so many over all [svc 2.26]", async () => {
    const slots = new UpstreamSlots(3);
    const a1 = await slots.acquire("a", never, WAIT_MS);
    await slots.acquire("a", never, WAIT_MS);
    const order: string[] = [];
    const third = slots.acquire("a", never, WAIT_MS).then(() => order.push("a"));
    await slots.acquire("b", never, WAIT_MS);
    const other = slots.acquire("c", never, WAIT_MS).then(() => order.push("c"));
    await Promise.resolve();
    assert.deepEqual(order, []);
    a1?.();
    a1?.();
    await third;
    assert.deepEqual(order, ["a"]);
    assert.equal(await Promise.race([other.then(() => "c"), Promise.resolve("waiting")]), "waiting");
  });

  it("a request that gives up leaves the queue, and its turn is not lost", async () => {
    const slots = new UpstreamSlots(1);
    const running = await slots.acquire("a", never, WAIT_MS);
    const controller = new AbortController();
    const left = slots.acquire("b", controller.signal, WAIT_MS);
    const next = slots.acquire("c", never, WAIT_MS);
    assert.equal(await slots.acquire("d", never, 0), undefined, "no time is left");
    controller.abort();
    assert.equal(await left, undefined);
    running?.();
    assert.equal(typeof (await next), "function");
  });
});
