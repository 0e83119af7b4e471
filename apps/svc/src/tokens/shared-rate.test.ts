import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { silentLogger, systemClock, type Clock, type LogFields, type Logger } from "@devplat/base";
import { memoryStore } from "../storage/memory.test-kit.ts";
import type { OneTimeStore, Store } from "../storage/store.ts";
import { SharedRate } from "./shared-rate.ts";
import { TokenRate } from "./token-rate.ts";

/** The start of a minute. */
const START = 1_700_000_040_000;

describe("a token's requests over instances", () => {
  let store: Store;
  let now: number;
  let asked: number;
  const clock: Clock = { ...systemClock, now: () => now, monotonic: () => now };
  beforeEach(async () => {
    store = await memoryStore();
    now = START;
    asked = 0;
  });
  afterEach(async () => store.close());

  const counted = (): OneTimeStore => ({
    put: async (...given) => (asked++, store.oneTime.put(...given)),
    get: async (...given) => (asked++, store.oneTime.get(...given)),
    replace: async (...given) => (asked++, store.oneTime.replace(...given)),
    take: async (...given) => store.oneTime.take(...given),
    deleteExpired: async (...given) => store.oneTime.deleteExpired(...given),
  });
  const instance = (logger: Logger = silentLogger): TokenRate =>
    new TokenRate(0, clock, new SharedRate(counted(), clock, logger));
  /** Sends as many requests to each instance, in turn. @returns those that were admitted, and what the others were told */
  const send = async (
    instances: readonly TokenRate[],
    each: number,
    perMinute: number,
  ): Promise<{ admitted: number; waits: Set<number> }> => {
    let admitted = 0;
    const waits = new Set<number>();
    for (let count = 0; count < each; count++) {
      for (const rate of instances) {
        const wait = await rate.take("t", perMinute);
        if (wait === undefined) admitted++;
        else waits.add(wait);
      }
    }
    return { admitted, waits };
  };

  for (const [perMinute, slack] of [
    [1, 0],
    [10, 0],
    [100, 5],
    [6000, 300],
  ] as const) {
    it(`of ${perMinute} a minute are shared by three instances, and few ask the database`, async () => {
      const instances = [instance(), instance(), instance()];
      const { admitted, waits } = await send(instances, perMinute, perMinute);
      assert.ok(admitted >= perMinute && admitted <= perMinute + 3 * slack, String(admitted));
      assert.deepEqual([...waits], [60]);
      // Two or three queries for each of 20 leases and, at the end, for each instance.
      assert.ok(asked <= 80, String(asked));
      now += 60_000;
      const next = await send(instances, perMinute, perMinute);
      assert.ok(next.admitted >= perMinute && next.admitted <= perMinute + 3 * slack, String(next.admitted));
    });
  }

  it("are not held up after the time that was said [svc 11.5]", async () => {
    const [one, two] = [instance(), instance()];
    now += 12_400;
    await send([one], 10, 10);
    assert.equal(await two.take("t", 10), 48);
    now += 48_000;
    assert.equal(await two.take("t", 10), undefined);
  });

  it("of one instance alone name the end of the minute, not the next refill", async () => {
    const rate = instance();
    const { admitted, waits } = await send([rate], 61, 60);
    assert.deepEqual([admitted, [...waits]], [60, [60]]);
  });

  it("below a twentieth of the limit never ask the database", async () => {
    await send([instance(), instance()], 300, 6000);
    assert.equal(asked, 0);
  });

  it("that come together share one request to the database", async () => {
    const rate = instance();
    const waits = await Promise.all(Array.from({ length: 40 }, async () => rate.take("t", 20)));
    assert.equal(waits.filter((wait) => wait === undefined).length, 20);
    assert.ok(asked <= 60, String(asked));
  });

  it("are limited by each instance while the database does not answer [svc 11.5]", async () => {
    const lines: LogFields[] = [];
    const logger = { ...silentLogger, warn: (fields: LogFields) => void lines.push(fields) };
    const [one, two] = [instance(logger), instance(logger)];
    await store.close();
    const { admitted } = await send([one, two], 30, 20);
    assert.equal(admitted, 40);
    assert.equal(lines.length, 2);
    store = await memoryStore();
    now += 60_000;
    assert.equal((await send([one, two], 30, 20)).admitted <= 22, true);
  });

  it("go on when the database does not answer", async () => {
    const silent: OneTimeStore = { ...counted(), get: async () => new Promise(() => undefined) };
    const rate = new TokenRate(0, clock, new SharedRate(silent, clock, silentLogger));
    const keepAlive = setInterval(() => undefined, 1000);
    assert.equal(await rate.take("t", 2), undefined);
    clearInterval(keepAlive);
  });
});
