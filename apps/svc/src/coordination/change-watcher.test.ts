import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setImmediate as yieldToOthers } from "node:timers/promises";
import { silentLogger, systemClock, type Clock } from "@devplat/base";
import { until } from "@devplat/testkit";
import type { ChangeCounts, ChangeStore } from "../storage/coordination-store.ts";
import { ChangeWatcher } from "./change-watcher.ts";

/** A clock whose sleepers wake when the test has put the time forward far enough. */
class TestClock implements Clock {
  #ms = 0;
  readonly #sleepers = new Set<{ readonly at: number; readonly wake: () => void }>();

  now = (): number => this.#ms;
  monotonic = (): number => this.#ms;

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const sleeper = { at: this.#ms + ms, wake: resolve };
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", () => {
        this.#sleepers.delete(sleeper);
        reject(new Error("aborted"));
      });
      if (signal?.aborted === true) reject(new Error("aborted"));
    });
  }

  /** In steps, so that what wakes can sleep again. */
  async forward(ms: number): Promise<void> {
    for (const end = this.#ms + ms; this.#ms < end;) {
      this.#ms = Math.min(end, this.#ms + 50);
      for (const sleeper of this.#sleepers) {
        if (sleeper.at > this.#ms) continue;
        this.#sleepers.delete(sleeper);
        sleeper.wake();
      }
      for (let turn = 0; turn < 20; turn++) await yieldToOthers();
    }
  }
}

describe("ChangeWatcher", () => {
  let clock: TestClock;
  let counts: Record<keyof ChangeCounts, number>;
  let respond: () => Promise<void>;
  let report: () => void;
  let applied: string[];
  let applying: () => Promise<void>;
  let watcher: ChangeWatcher;
  let stop: AbortController;
  let running: Promise<void>;

  beforeEach(async () => {
    clock = new TestClock();
    counts = { repositories: 1, epochs: 1 };
    respond = async () => undefined;
    applied = [];
    applying = async () => undefined;
    const store: ChangeStore = {
      counts: async () => {
        const found = { ...counts };
        await respond();
        return found;
      },
      listen: async (onChange) => void (report = onChange),
    };
    const apply = (topic: string) => async (): Promise<void> => {
      await applying();
      applied.push(topic);
    };
    watcher = new ChangeWatcher({
      store,
      apply: { repositories: apply("repositories"), epochs: apply("epochs") },
      clock,
      logger: silentLogger,
    });
    await watcher.start();
    assert.deepEqual(applied, ["repositories", "epochs"]);
    applied = [];
    stop = new AbortController();
    running = watcher.run(stop.signal);
  });
  afterEach(async () => {
    stop.abort();
    await clock.forward(5000);
    await running;
  });

  it("a change is applied within 2 seconds, also if nothing reports it", async () => {
    await clock.forward(5000);
    assert.deepEqual(applied, []);
    counts.epochs++;
    await clock.forward(1500);
    assert.deepEqual(applied, ["epochs"]);
    counts.repositories++;
    await clock.forward(1500);
    assert.deepEqual(applied, ["epochs", "repositories"]);
  });

  it("a reported change is applied immediately, and a burst of reports reads seldom", async () => {
    let reads = 0;
    respond = async () => void reads++;
    await clock.forward(200);
    counts.repositories++;
    report();
    await until(() => applied.length === 1);
    for (let round = 0; round < 100; round++) {
      counts.repositories++;
      report();
      await yieldToOthers();
    }
    await clock.forward(300);
    assert.ok(reads <= 5, String(reads));
    assert.equal(applied.at(-1), "repositories");
  });

  it("what nobody counted is found within 10 seconds", async () => {
    await clock.forward(11_500);
    assert.deepEqual(applied, ["repositories", "epochs"]);
  });

  it("a change that could not be applied is applied again", async () => {
    applying = async () => Promise.reject(new Error("disk full"));
    counts.epochs++;
    await clock.forward(3000);
    assert.equal(applied.length, 0);
    applying = async () => undefined;
    await clock.forward(1500);
    assert.ok(applied.includes("epochs"));
  });

  it("an instance that was paused is not current until it has read again", async () => {
    await clock.forward(1000);
    assert.equal(watcher.isCurrent, true);
    // A response of the time before the pause comes after it.
    const late = Promise.withResolvers<void>();
    respond = async () => late.promise;
    report();
    await yieldToOthers();
    respond = async () => undefined;
    clock.monotonic = () => clock.now() + 60_000;
    counts.epochs++;
    assert.equal(watcher.isCurrent, false);
    const refreshed = watcher.refresh();
    late.resolve();
    await refreshed;
    assert.equal(watcher.isCurrent, true);
    assert.ok(applied.includes("epochs"));
  });

  it("while the database refuses, requests wait for nothing, and nothing is applied", async () => {
    respond = async () => Promise.reject(new Error("refused"));
    await clock.forward(3000);
    assert.equal(watcher.isCurrent, false);
    counts.epochs++;
    await watcher.refresh();
    assert.deepEqual(applied, []);
  });

  it("a database that hangs delays the first request by a second, and no other", async () => {
    const hang = Promise.withResolvers<void>();
    respond = async () => hang.promise;
    clock.monotonic = () => clock.now() + 60_000;
    let isDone = false;
    const refreshed = watcher.refresh().then(() => (isDone = true));
    await clock.forward(900);
    assert.equal(isDone, false);
    await clock.forward(150);
    await refreshed;
    await watcher.refresh();
    hang.resolve();
  });

  it("after the first response of a database that was away, all changes come first", async () => {
    respond = async () => Promise.reject(new Error("refused"));
    await clock.forward(3000);
    counts.epochs++;
    respond = async () => undefined;
    // Between two reads. A token was looked up with success.
    watcher.databaseResponded();
    await watcher.refresh();
    assert.equal(watcher.isCurrent, true);
    assert.deepEqual(applied, ["epochs"]);
  });

  it("a request waits for changes that are being applied, however long that takes", async () => {
    const removal = Promise.withResolvers<void>();
    applying = async () => removal.promise;
    counts.epochs++;
    clock.monotonic = () => clock.now() + 60_000;
    let isDone = false;
    const refreshed = watcher.refresh().then(() => (isDone = true));
    await clock.forward(5000);
    assert.equal(isDone, false);
    removal.resolve();
    await clock.forward(1500);
    await refreshed;
    assert.ok(applied.includes("epochs"));
  });

  it("a stop ends it at any time", async () => {
    stop.abort();
    await clock.forward(200);
    await running;
    assert.equal(systemClock.monotonic() > 0, true);
  });
});
