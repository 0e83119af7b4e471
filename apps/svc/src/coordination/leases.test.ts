import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { silentLogger, type Logger, systemClock, type Clock } from "@devplat/base";
import { until } from "@devplat/testkit";
import type { LeaseStore } from "../storage/coordination-store.ts";
import { memoryStore } from "../storage/memory.test-kit.ts";
import type { Store } from "../storage/store.ts";
import { Leases } from "./leases.ts";

const LONG_MS = 60_000;
const HOUR_MS = 3_600_000;

/** A clock of another machine, an hour off, whose time a test can also put forward. */
class SkewedClock implements Clock {
  readonly #skewMs: number;
  #forwardMs = 0;

  constructor(skewMs: number) {
    this.#skewMs = skewMs;
  }

  now = (): number => systemClock.now() + this.#skewMs;
  monotonic = (): number => systemClock.monotonic() + this.#forwardMs;
  sleep = async (ms: number, signal?: AbortSignal): Promise<void> => systemClock.sleep(ms, signal);

  forward(ms: number): void {
    this.#forwardMs += ms;
  }
}

describe("Leases", () => {
  let store: Store;
  beforeEach(async () => {
    store = await memoryStore();
  });
  afterEach(async () => store.close());

  const leasesOf = (
    instance: string,
    clock: Clock = systemClock,
    leases: LeaseStore = store.leases,
    logger: Logger = silentLogger,
  ): Leases => new Leases({ store: leases, instance, clock, logger });

  it("a lease is renewed while its work runs, and free after its release", async () => {
    let renewals = 0;
    const counting: LeaseStore = {
      ...store.leases,
      renew: async (lease, ttlMs) => store.leases.renew(lease, ttlMs).finally(() => renewals++),
    };
    const held = await leasesOf("a", systemClock, counting).hold("work", 1000);
    assert.ok(held);
    const other = leasesOf("b");
    // Together they take longer than the lease.
    await until(() => renewals === 4);
    assert.equal(await other.hold("work", LONG_MS), undefined);
    assert.equal(held.isHeld, true);
    await held.release();
    await held.release();
    assert.equal(held.isHeld, false);
    const next = await other.hold("work", LONG_MS);
    assert.ok(next && next.fence > held.fence);
    await next.release();
  });

  it("two tasks of one instance exclude each other", async () => {
    const leases = leasesOf("a");
    await using held = await leases.hold("work", LONG_MS);
    assert.ok(held);
    assert.equal(await leases.hold("work", LONG_MS), undefined);
  });

  it("a holder that was paused past the end sees immediately that it lost it", async () => {
    const clock = new SkewedClock(0);
    await using held = await leasesOf("a", clock).hold("work", LONG_MS);
    assert.ok(held);
    clock.forward(LONG_MS - 1000);
    assert.equal(held.isHeld, true);
    clock.forward(1000);
    assert.equal(held.isHeld, false);
  });

  it("a holder whose lease was taken is told, and cannot release it any more", async () => {
    const paused = Promise.withResolvers<void>();
    const late: LeaseStore = {
      ...store.leases,
      renew: async (lease, ttlMs) => {
        await paused.promise;
        return store.leases.renew(lease, ttlMs);
      },
    };
    const held = await leasesOf("a", systemClock, late).hold("work", 30);
    assert.ok(held);
    await using next = await until(async () => leasesOf("b").hold("work", LONG_MS));
    assert.ok(next.fence > held.fence);
    assert.equal(held.isHeld, false);
    paused.resolve();
    await until(() => held.lost.aborted);
    assert.match(String(held.lost.reason), /Lost the lease "work": another holder has it/);
    await held.release();
    assert.equal(await leasesOf("c").hold("work", LONG_MS), undefined);
  });

  it("a database that does not respond is waited for until the lease ends", async () => {
    let isGone = false;
    const renewals: boolean[] = [];
    const failing: LeaseStore = {
      ...store.leases,
      renew: async (lease, ttlMs) => {
        renewals.push(isGone);
        if (isGone) throw new Error("gone");
        return store.leases.renew(lease, ttlMs);
      },
    };
    const warnings: string[] = [];
    const logger: Logger = { ...silentLogger, warn: (_fields, message) => void warnings.push(message) };
    const held = await leasesOf("a", systemClock, failing, logger).hold("work", 90);
    assert.ok(held);
    await until(() => renewals.length > 0);
    isGone = true;
    await until(() => renewals.filter(Boolean).length > 0);
    isGone = false;
    const before = renewals.length;
    await until(() => renewals.length > before + 3);
    assert.equal(held.lost.aborted, false);
    isGone = true;
    await until(() => held.lost.aborted);
    assert.equal(held.isHeld, false);
    const said = "a lease could not be renewed yet";
    assert.deepEqual(warnings, [said, said, "lost a lease; its work stops"], "each outage is said once");
    await held.release();
  });

  it("clocks of instances that are an hour apart change nothing", async () => {
    for (const skew of [-HOUR_MS, HOUR_MS]) {
      const [here, there] = [leasesOf("a"), leasesOf("b", new SkewedClock(skew))];
      const one = await here.hold(`work ${skew}`, LONG_MS);
      assert.ok(one);
      assert.equal(await there.hold(`work ${skew}`, LONG_MS), undefined);
      await one.release();
      const two = await there.hold(`work ${skew}`, LONG_MS);
      assert.ok(two && two.isHeld);
      assert.equal(await here.hold(`work ${skew}`, LONG_MS), undefined);
      await two.release();
    }
  });
});
