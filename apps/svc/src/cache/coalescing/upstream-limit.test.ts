import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { UpstreamLimit } from "./upstream-limit.ts";

describe("UpstreamSlots", () => {
  const WAIT_MS = 60_000;
  const never = new AbortController().signal;

  it("give two turns per repository, in order, and so many over all [svc 2.26]", async () => {
    const limit = new UpstreamLimit(3);
    const a1 = await limit.acquire("a", never, WAIT_MS);
    await limit.acquire("a", never, WAIT_MS);
    const order: string[] = [];
    const third = limit.acquire("a", never, WAIT_MS).then(() => order.push("a"));
    await limit.acquire("b", never, WAIT_MS);
    const other = limit.acquire("c", never, WAIT_MS).then(() => order.push("c"));
    await Promise.resolve();
    assert.deepEqual(order, []);
    a1?.();
    a1?.();
    await third;
    assert.deepEqual(order, ["a"]);
    assert.equal(await Promise.race([other.then(() => "c"), Promise.resolve("waiting")]), "waiting");
  });

  it("a request that gives up leaves the queue, and its turn is not lost", async () => {
    const limit = new UpstreamLimit(1);
    const running = await limit.acquire("a", never, WAIT_MS);
    const controller = new AbortController();
    const left = limit.acquire("b", controller.signal, WAIT_MS);
    const next = limit.acquire("c", never, WAIT_MS);
    assert.equal(await limit.acquire("d", never, 0), undefined, "no time is left");
    controller.abort();
    assert.equal(await left, undefined);
    running?.();
    assert.equal(typeof (await next), "function");
  });
});
