import assert from "node:assert/strict";
import { it } from "node:test";
import type { Lease } from "../coordination-store.ts";
import type { Store } from "../store.ts";

/** Milliseconds of a lease that does not end during a test. */
const LONG_MS = 60_000;
/** Milliseconds of a lease that the test waits for. */
const SHORT_MS = 50;

export function leaseCases(store: () => Store): void {
  const acquired = async (holder: string, ttlMs: number): Promise<Lease> => {
    const lease = await store().leases.acquire("sweep", holder, ttlMs);
    assert.ok(lease, `${holder} gets the lease`);
    return lease;
  };

  it("a lease has one holder at a time, who may take it again", async () => {
    const { leases } = store();
    const names = ["one", "two", "three"];
    const won = await Promise.all(names.map(async (holder) => leases.acquire("sweep", holder, LONG_MS)));
    const [first, ...others] = won.filter((each) => each !== undefined);
    assert.deepEqual(others, []);
    assert.ok(first);
    assert.deepEqual({ ...first, fence: 0 }, { name: "sweep", holder: first.holder, fence: 0 });
    assert.equal(await leases.acquire("sweep", "four", LONG_MS), undefined);
    assert.deepEqual(await leases.acquire("sweep", first.holder, LONG_MS), first);
    assert.notEqual(await leases.acquire("other", "four", LONG_MS), undefined);
  });

  it("a lease that ended has a new holder, and the former one cannot change it", async () => {
    const { leases } = store();
    const first = await acquired("one", 0);
    const second = await acquired("two", LONG_MS);
    assert.equal(await leases.renew(first, LONG_MS), false);
    await leases.release(first);
    assert.equal(await leases.acquire("sweep", "three", LONG_MS), undefined);
    assert.equal(await leases.renew(second, LONG_MS), true);
    await leases.release(second);
    assert.notEqual(await leases.acquire("sweep", "three", LONG_MS), undefined);
    await leases.release({ name: "never acquired", holder: "one", fence: 1 });
  });

  it("a lease ends by itself after its time, and not before", async () => {
    const { leases } = store();
    const sentAt = performance.now();
    const first = await acquired("one", SHORT_MS);
    let next: Lease | undefined;
    while (next === undefined) next = await leases.acquire("sweep", "two", LONG_MS);
    // Clocks of databases count whole milliseconds.
    assert.ok(performance.now() - sentAt >= SHORT_MS - 2);
    assert.ok(next.fence > first.fence);
  });

  it("a lease whose time is over is renewed if nobody has acquired it", async () => {
    const { leases } = store();
    const lease = await acquired("one", 0);
    assert.equal(await leases.renew(lease, LONG_MS), true);
    assert.equal(await leases.acquire("sweep", "two", LONG_MS), undefined);
  });

  it("each acquisition by another holder gets a higher fencing number", async () => {
    const { leases } = store();
    const fences: number[] = [];
    for (let round = 0; round < 8; round++) {
      const lease = await acquired(`holder ${round % 2}`, LONG_MS);
      fences.push(lease.fence);
      assert.equal((await acquired(lease.holder, LONG_MS)).fence, lease.fence);
      await leases.release(lease);
      assert.equal(await leases.renew(lease, LONG_MS), false);
    }
    assert.deepEqual(
      fences,
      [...new Set(fences)].toSorted((a, b) => a - b),
    );
    assert.ok((fences[0] ?? 0) > 0);
  });

  it("of holders that race for a lease that ended, exactly one gets it each time", async () => {
    const { leases } = store();
    let last = 0;
    for (let round = 0; round < 5; round++) {
      const won = await Promise.all(
        [1, 2, 3, 4].map(async (each) => leases.acquire("race", `${round}/${each}`, LONG_MS)),
      );
      const [lease, ...others] = won.filter((each) => each !== undefined);
      assert.deepEqual(others, []);
      assert.ok(lease && lease.fence > last);
      last = lease.fence;
      await leases.release(lease);
    }
  });

  it("leases that ended long ago are deleted, the others stay", async () => {
    const { leases } = store();
    const released = await acquired("one", LONG_MS);
    await leases.release(released);
    const kept = await leases.acquire("kept", "one", LONG_MS);
    assert.ok(kept);
    assert.equal(await leases.deleteEnded(LONG_MS), 0);
    // The clock must have gone on, so that the next number is higher.
    let deleted = 0;
    while (deleted === 0) deleted = await leases.deleteEnded(0);
    assert.equal(deleted, 1);
    assert.equal(await leases.renew(kept, LONG_MS), true);
    assert.ok((await acquired("two", LONG_MS)).fence > released.fence);
  });
}
