import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { describe, it } from "node:test";
import { KeyedSemaphore, Semaphore } from "./semaphore.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("Semaphore", () => {
  it("gives places to waiting callers in the order of their calls", async () => {
    const semaphore = new Semaphore(1);
    const first = await semaphore.acquire();
    const order: number[] = [];
    const others = [1, 2].map(async (number) => {
      const release = await semaphore.acquire();
      order.push(number);
      return release;
    });
    await turn();
    assert.deepEqual(order, []);
    first();
    const second = await others[0];
    await turn();
    assert.deepEqual(order, [1]);
    second?.();
    (await others[1])?.();
    assert.deepEqual(order, [1, 2]);
    assert.equal(semaphore.taken, 0);
  });

  it("a caller with first set waits before the others", async () => {
    const semaphore = new Semaphore(1);
    const held = await semaphore.acquire();
    const order: string[] = [];
    const all = [
      ["late", undefined],
      ["early", true],
      ["second", true],
    ] as const;
    const waiting = all.map(async ([name, first]) => {
      const release = await semaphore.acquire(undefined, first);
      order.push(name);
      release();
    });
    held();
    await Promise.all(waiting);
    assert.deepEqual(order, ["early", "second", "late"]);
  });

  it("a place that a waiting caller gets is never free, and counts one release", async () => {
    const semaphore = new Semaphore(1);
    const held = await semaphore.acquire();
    const waiting = semaphore.acquire();
    held();
    held();
    assert.equal(semaphore.tryAcquire(), undefined);
    const next = await waiting;
    held();
    assert.equal(semaphore.taken, 1);
    next();
    assert.ok(semaphore.tryAcquire() !== undefined);
  });

  it("a signal ends the wait: its reason is thrown, and no place is taken", async () => {
    const semaphore = new Semaphore(1);
    const held = await semaphore.acquire();
    const leaving = new AbortController();
    const given = semaphore.acquire(leaving.signal);
    const first = semaphore.acquire(leaving.signal, true);
    const waiting = semaphore.acquire();
    leaving.abort(new Error("gone"));
    await assert.rejects(given, /gone/);
    await assert.rejects(first, /gone/);
    held();
    (await waiting)();
    assert.equal(semaphore.taken, 0);
    await assert.rejects(semaphore.acquire(leaving.signal), /gone/);
    assert.equal(semaphore.taken, 0);
  });

  it("a signal that fires after the place was given changes nothing", async () => {
    const semaphore = new Semaphore(1);
    const held = await semaphore.acquire();
    const leaving = new AbortController();
    const waiting = semaphore.acquire(leaving.signal);
    held();
    leaving.abort(new Error("gone"));
    const release = await waiting;
    assert.equal(semaphore.taken, 1);
    release();
    assert.equal(semaphore.taken, 0);
  });

  it("leaves no listener on a signal, which may live as long as the process", async () => {
    const semaphore = new Semaphore(1);
    const held = await semaphore.acquire();
    const { signal } = new AbortController();
    const waiting = semaphore.acquire(signal);
    assert.equal(getEventListeners(signal, "abort").length, 1);
    held();
    await waiting;
    assert.equal(getEventListeners(signal, "abort").length, 0);
  });
});

describe("KeyedSemaphore", () => {
  it("each key has its own places", async () => {
    const semaphore = new KeyedSemaphore<string>(1);
    const held = await semaphore.acquire("a");
    assert.equal(semaphore.tryAcquire("a"), undefined);
    const other = semaphore.tryAcquire("b");
    assert.ok(other !== undefined);
    const waiting = semaphore.acquire("a");
    other();
    held();
    (await waiting)();
    (await semaphore.acquire("a"))();
  });

  it("a release gives back one place of the key, and no other", async () => {
    const semaphore = new KeyedSemaphore<string>(2);
    const first = await semaphore.acquire("a");
    await semaphore.acquire("a");
    first();
    assert.ok(semaphore.tryAcquire("a") !== undefined);
    assert.equal(semaphore.tryAcquire("a"), undefined);
  });

  it("a late second release does not free the place of another caller", async () => {
    const semaphore = new KeyedSemaphore<string>(1);
    const first = await semaphore.acquire("a");
    first();
    await semaphore.acquire("a");
    first();
    assert.equal(semaphore.tryAcquire("a"), undefined);
  });

  it("a signal ends the wait for a place of the key", async () => {
    const semaphore = new KeyedSemaphore<string>(1);
    const held = await semaphore.acquire("a");
    const leaving = new AbortController();
    const waiting = semaphore.acquire("a", leaving.signal);
    leaving.abort(new Error("gone"));
    await assert.rejects(waiting, /gone/);
    await assert.rejects(semaphore.acquire("b", leaving.signal), /gone/);
    held();
    assert.ok(semaphore.tryAcquire("a") !== undefined);
  });

  it("with a maximum of Infinity, every caller gets a place", () => {
    const semaphore = new KeyedSemaphore<string>(Infinity);
    for (let count = 0; count < 1000; count++) assert.ok(semaphore.tryAcquire("a") !== undefined);
  });
});
