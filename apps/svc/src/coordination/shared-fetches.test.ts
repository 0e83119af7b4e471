import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { silentLogger, systemClock } from "@devplat/base";
import { loopSeconds, randomFrom, testSeed, until } from "@devplat/testkit";
import type { SharedFetchStore } from "../storage/coordination-store.ts";
import { memoryStore } from "../storage/memory.test-kit.ts";
import type { Store } from "../storage/store.ts";
import type { LedFetch } from "./led-fetch.ts";
import { SharedFetches, type SharedFetchesOptions, type SharedFetchTurn } from "./shared-fetches.ts";

const LONG = { waitMs: 60_000 };
const fail = async (): Promise<never> => Promise.reject(new Error("gone"));

describe("SharedFetches", () => {
  let store: Store;
  const signal = new AbortController().signal;
  beforeEach(async () => {
    store = await memoryStore();
  });
  afterEach(async () => store.close());

  const instance = (
    name: string,
    options: SharedFetchesOptions = LONG,
    fetches: SharedFetchStore = store.sharedFetches,
  ): SharedFetches =>
    new SharedFetches({ store: fetches, instance: name, clock: systemClock, logger: silentLogger }, options);
  const led = (turn: SharedFetchTurn): LedFetch => {
    assert.ok(turn.kind === "lead");
    return turn.fetch;
  };
  const isAwaited = async (): Promise<void> => {
    await until(async () => {
      const found = await store.sharedFetches.find("k");
      if (found === undefined) return false;
      const progress = { state: "fetching", bytes: found.bytes, expectedBytes: found.expectedBytes } as const;
      return (await store.sharedFetches.progress("k", found.fence, progress, 5000))?.isAwaited;
    });
  };

  it("one instance fetches, and the others get its object", async () => {
    const fetch = led(await instance("a").join("k", { signal }));
    const others = ["b", "c", "d"].map(async (name) => instance(name).join("k", { signal }));
    await until(() => fetch.isAwaited);
    let told = 0;
    fetch.onAwaited(() => told++);
    assert.equal(told, 1);
    fetch.uploading();
    await fetch.end("shared");
    const turns = await Promise.all(others);
    assert.deepEqual(
      turns.map(({ kind }) => kind),
      ["shared", "shared", "shared"],
    );
    assert.equal((await instance("e").join("k", { signal })).kind, "shared");
    await led(await instance("e").join("other", { signal })).end("failed");
  });

  it("the instance that fetches is told when another one begins to wait", async () => {
    const fetch = led(await instance("a").join("k", { signal }));
    const told = new Promise<void>((resolve) => fetch.onAwaited(resolve));
    assert.equal(fetch.isAwaited, false);
    const other = instance("b").join("k", { signal });
    await told;
    await fetch.end("shared");
    await other;
  });

  for (const state of ["failed", "private"] as const) {
    it(`after a fetch that ended as ${state}, nobody waits again`, async () => {
      const fetch = led(await instance("a").join("k", { signal }));
      const others = ["b", "c", "d"].map(async (name) => instance(name).join("k", { signal }));
      await until(() => fetch.isAwaited);
      await fetch.end(state);
      const turns = await Promise.all(others);
      const leaders = turns.filter(({ kind }) => kind === "lead");
      const alone = turns.filter(({ kind }) => kind === "alone");
      assert.equal(leaders.length + alone.length, 3);
      assert.ok(leaders.length >= 1);
      for (const each of leaders) await led(each).end("failed");
    });
  }

  it("a fetch whose end is too far away is not waited for", async () => {
    const fetch = led(await instance("a").join("k", { signal }));
    const startedAt = performance.now();
    while (performance.now() - startedAt < 20) await sleep(5);
    // At this rate it takes a thousand times as long as it has taken so far.
    fetch.received(1, 100_000_000);
    await until(async () => (await store.sharedFetches.find("k"))?.expectedBytes);
    const running = fetch.fence;
    assert.deepEqual(await instance("b").join("k", { signal }), {
      kind: "alone",
      reason: "too_long",
      running,
    });
    await fetch.end("failed");
  });

  /** @returns how long an instance waits for a fetch that does not end, in milliseconds */
  const waitsFor = async (fetch: LedFetch, waitMs: number): Promise<number> => {
    const startedAt = performance.now();
    const turn = await instance("b", { waitMs }).join("k", { signal });
    assert.deepEqual(turn, { kind: "alone", reason: "too_long", running: fetch.fence });
    return performance.now() - startedAt;
  };

  it("a transfer without a known end is waited for until a tenth of the time is left", async () => {
    const fetch = led(await instance("a").join("k", { signal }));
    fetch.received(1);
    assert.ok((await waitsFor(fetch, 300)) >= 270 - 2);
    await fetch.end("failed");
  });

  it("a fetch that is uploaded is waited for until the time is over", async () => {
    const fetch = led(await instance("a").join("k", { signal }));
    fetch.uploading();
    await until(async () => (await store.sharedFetches.find("k"))?.state === "uploading");
    assert.ok((await waitsFor(fetch, 300)) >= 300 - 2);
    await fetch.end("failed");
  });

  for (const state of ["shared", "private", "failed"] as const) {
    it(`a fetch that was not waited for any longer is seen to end as ${state}`, async () => {
      const fetch = led(await instance("a").join("k", { signal }));
      const other = instance("b", { waitMs: 0 });
      assert.equal((await other.join("k", { signal })).kind, "alone");
      const watched = other.becomesShared("k", fetch.fence, signal);
      await fetch.end(state);
      assert.equal(await watched, state === "shared");
    });
  }

  it("an ended watch, one of another fetch, and one without the database see no end", async () => {
    const fetch = led(await instance("a").join("k", { signal }));
    const over = new AbortController();
    const watched = instance("b").becomesShared("k", fetch.fence, over.signal);
    over.abort();
    assert.equal(await watched, false);
    const ofAnother = instance("b").becomesShared("k", fetch.fence + 1, signal);
    await fetch.end("shared");
    assert.equal(await ofAnother, false);
    await store.close();
    assert.equal(await instance("b").becomesShared("k", fetch.fence, signal), false);
    store = await memoryStore();
  });

  it("a fetch of an instance that died is taken over by one of those that wait", async () => {
    await store.sharedFetches.begin("k", "dead", 300);
    const turns = await Promise.all(
      ["b", "c"].map(async (name) => {
        const turn = await instance(name).join("k", { signal });
        if (turn.kind === "lead") await turn.fetch.end("shared");
        return turn.kind;
      }),
    );
    assert.deepEqual(turns.toSorted(), ["lead", "shared"]);
  });

  it("an object that is not in the bucket after all is fetched again, by one", async () => {
    await led(await instance("a").join("k", { signal })).end("shared");
    const turn = await instance("b").join("k", { signal });
    assert.ok(turn.kind === "shared");
    const again = await Promise.all([
      instance("b").join("k", { signal, insteadOf: turn.fence }),
      instance("c", { waitMs: 100 }).join("k", { signal, insteadOf: turn.fence }),
    ]);
    assert.equal(again.filter(({ kind }) => kind === "lead").length, 1);
    for (const each of again) if (each.kind === "lead") await each.fetch.end("failed");
  });

  it("a client that leaves ends the wait", async () => {
    const fetch = led(await instance("a").join("k", { signal }));
    const gone = new AbortController();
    const waiting = instance("b").join("k", { signal: gone.signal });
    await isAwaited();
    gone.abort(new Error("left"));
    await assert.rejects(waiting, /left|aborted/);
    await fetch.end("failed");
  });

  it("without the database each instance fetches by itself, and nothing fails", async () => {
    const fetch = led(await instance("a").join("k", { signal }));
    await store.close();
    assert.deepEqual(await instance("b").join("k", { signal }), { kind: "alone", reason: "unavailable" });
    fetch.received(5);
    await fetch.end("shared");
    store = await memoryStore();
  });

  it("a database that stops in the middle of a wait does not make the wait longer", async () => {
    const fetch = led(await instance("a").join("k", { signal }));
    const hanging = { ...store.sharedFetches, find: async () => new Promise<never>(() => undefined) };
    const startedAt = performance.now();
    const turn = await instance("b", { waitMs: 300 }, hanging).join("k", { signal });
    assert.deepEqual(turn, { kind: "alone", reason: "unavailable" });
    // One response of a database that does not respond would take 5 seconds.
    assert.ok(performance.now() - startedAt < 3000);
    await fetch.end("failed");
  });

  it("a fetch that the database begins after its caller has gone on ends immediately", async () => {
    const released = Promise.withResolvers<void>();
    const late: SharedFetchStore["begin"] = async (...args) => {
      await released.promise;
      return await store.sharedFetches.begin(...args);
    };
    const turn = await instance("a", { waitMs: 10 }, { ...store.sharedFetches, begin: late }).join("k", {
      signal,
    });
    assert.deepEqual(turn, { kind: "alone", reason: "unavailable" });
    released.resolve();
    await until(async () => (await store.sharedFetches.find("k"))?.state === "failed");
    const next = led(await instance("b").join("k", { signal }));
    await next.end("failed");
  });

  it("random fetches with failures and deaths: one at a time, nobody waits too long", async () => {
    const random = randomFrom(testSeed());
    const options = { waitMs: 400, silentMs: 100 };
    /** Store of an instance that dies when it fetches: it reports nothing. */
    const silent = { ...store.sharedFetches, progress: fail, end: fail };
    for (const end = performance.now() + loopSeconds(0.02) * 1000; performance.now() < end;) {
      const key = `k${performance.now()}`;
      /** Times when the running fetches began. */
      const running = new Set<number>();
      const reader = async (name: string): Promise<void> => {
        await sleep(random() * 150);
        const startedAt = performance.now();
        const dies = random() < 0.2;
        const turn = await instance(name, options, dies ? silent : store.sharedFetches).join(key, { signal });
        const waitedMs = performance.now() - startedAt;
        // The limit, one look more, and time for a loaded machine.
        assert.ok(waitedMs < options.waitMs + 2000, `waited ${waitedMs} ms`);
        if (turn.kind !== "lead") return;
        const beganAt = performance.now();
        for (const other of running) {
          // Only after a silence. Clocks of databases count whole milliseconds.
          assert.ok(beganAt - other >= options.silentMs - 5, "one at a time");
        }
        running.add(beganAt);
        await sleep(random() * 60);
        running.delete(beganAt);
        const fate = random();
        await turn.fetch.end(fate < 0.5 ? "shared" : fate < 0.8 ? "failed" : "private");
      };
      await Promise.all(["a", "b", "c", "d", "a", "b", "c", "d"].map(reader));
    }
  });
});
