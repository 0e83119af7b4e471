import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Readable } from "node:stream";
import { startMinio, startS3Proxy, type S3Server } from "@devplat/testkit";
import { CircuitBreaker, type CircuitState } from "./circuit-breaker.ts";
import { ObjectStoreError, type ObjectStoreErrorCode } from "./errors.ts";
import type { ObjectStore } from "./object-store.ts";
import { checkObjectStore, faultWith, openTestStore, textOf } from "./object-store.test-kit.ts";

/** A store whose `head` fails as the test says, under a clock that the test moves. */
function testCircuit() {
  const state = { fault: undefined as unknown, calls: 0, time: 0, wait: Promise.resolve() };
  const changes: CircuitState[] = [];
  const head = async () => {
    state.calls++;
    await state.wait;
    if (state.fault !== undefined) throw state.fault;
    return { etag: '"e"', length: 1, lastModified: undefined };
  };
  const get = () =>
    Promise.resolve({
      modified: true as const,
      etag: '"e"',
      length: 1,
      lastModified: undefined,
      bodyLength: 1,
      body: new Readable({
        read() {
          this.destroy(new ObjectStoreError("unreachable", "cut"));
        },
      }),
    });
  const store = new CircuitBreaker({ head, get } as unknown as ObjectStore, {
    clock: { monotonic: () => state.time },
    onChange: (change) => void changes.push(change),
  });
  const fail = async (code: ObjectStoreErrorCode, times = 1) => {
    state.fault = new ObjectStoreError(code, "as the test wants it");
    for (let each = 0; each < times; each++) await assert.rejects(store.head("a"), faultWith(code));
    state.fault = undefined;
  };
  return { state, store, changes, fail };
}

describe("CircuitBreaker", () => {
  it("opens after five failures in ten seconds, and sends nothing for 30 seconds", async () => {
    const { state, store, changes, fail } = testCircuit();
    await fail("timeout", 5);
    assert.equal(store.state, "open");
    for (const time of [0, 15_000, 29_999]) {
      state.time = time;
      await assert.rejects(store.head("a"), faultWith("circuit_open"));
    }
    assert.equal(state.calls, 5);
    state.time = 30_000;
    await store.head("a");
    assert.equal(store.state, "closed");
    assert.deepEqual(changes, ["open", "trying", "closed"]);
    await fail("timeout", 4);
    assert.equal(store.state, "closed");
  });

  it("stays closed while failures are rare, or are about one object or the settings", async () => {
    const { state, store, fail } = testCircuit();
    for (let each = 0; each < 20; each++) {
      state.time += 2501;
      await fail("unreachable");
    }
    for (const code of ["missing", "condition_failed", "denied", "damaged", "refused"] as const)
      await fail(code, 6);
    assert.equal(store.state, "closed");
  });

  it("lets one call try the store, and stays open for as long again if that fails", async () => {
    const { state, store, fail } = testCircuit();
    await fail("slow_down", 5);
    state.time = 30_000;
    const gate = Promise.withResolvers<void>();
    state.wait = gate.promise;
    state.fault = new ObjectStoreError("timeout", "still");
    const trial = store.head("a");
    await assert.rejects(store.head("b"), faultWith("circuit_open"));
    assert.equal(state.calls, 6);
    gate.resolve();
    await assert.rejects(trial, faultWith("timeout"));
    state.time = 59_999;
    await assert.rejects(store.head("a"), faultWith("circuit_open"));
    state.time = 60_000;
    state.fault = new ObjectStoreError("missing", "a missing object shows that the store works");
    await assert.rejects(store.head("a"), faultWith("missing"));
    assert.equal(store.state, "closed");
  });

  it("lets the next call try if the caller ended the one that tried", async () => {
    const { state, store, fail } = testCircuit();
    await fail("store_failed", 5);
    state.time = 30_000;
    state.fault = new DOMException("left", "AbortError");
    await assert.rejects(store.head("a"), /left/);
    state.fault = undefined;
    await store.head("a");
    assert.equal(store.state, "closed");
  });

  it("counts transfers that break off, and ignores late failures of old calls", async () => {
    const { state, store, changes } = testCircuit();
    for (let each = 0; each < 5; each++) {
      await assert.rejects(async () => textOf(await store.get("a")), faultWith("unreachable"));
    }
    assert.equal(store.state, "open");
    const { state: other, store: slow, fail: failSlow } = testCircuit();
    const gate = Promise.withResolvers<void>();
    other.wait = gate.promise;
    const late = slow.head("a");
    other.wait = Promise.resolve();
    await failSlow("timeout", 5);
    other.time = 20_000;
    other.fault = new ObjectStoreError("timeout", "late");
    gate.resolve();
    await assert.rejects(late, faultWith("timeout"));
    other.time = 30_000;
    other.fault = undefined;
    await slow.head("a");
    assert.deepEqual([changes.length, state.calls], [1, 0]);
  });
});

describe("CircuitBreaker around a real store", () => {
  it("keeps calls from a store that is gone, and passes them when it is back", async () => {
    const server = await startMinio();
    const proxy = await startS3Proxy(server.endpoint);
    const state = { time: 0 };
    const store = new CircuitBreaker(
      openTestStore({ ...server, endpoint: proxy.endpoint }, { timeoutMs: 300 }),
      {
        clock: { monotonic: () => state.time },
      },
    );
    try {
      await proxy.goAway();
      for (let each = 0; each < 5; each++) await assert.rejects(store.head("a"), faultWith("unreachable"));
      await proxy.comeBack();
      proxy.resetCounts();
      await assert.rejects(store.head("a"), faultWith("circuit_open"));
      assert.equal(proxy.counts.head, 0);
      state.time = 30_000;
      await assert.rejects(store.head("a"), faultWith("missing"));
      await store.put("a", Buffer.from("x"));
      assert.equal(await textOf(await store.get("a")), "x");
    } finally {
      await store.close();
      await proxy.stop();
      await server.stop();
    }
  });

  describe("passes the contract", () => {
    let server: S3Server;
    let store: CircuitBreaker;
    before(async () => {
      server = await startMinio();
      store = new CircuitBreaker(openTestStore(server));
    });
    after(async () => {
      await store.close();
      await server.stop();
    });
    checkObjectStore(() => store);
  });
});
