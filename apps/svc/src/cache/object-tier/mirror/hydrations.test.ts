import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import { repositoryId } from "../../../access/repository-id.ts";
import { Hydrations } from "./hydrations.ts";
import type { PullOptions, PullResult } from "./mirror-sync.ts";
import { TransferProgress } from "./transfer-progress.ts";

const ID = repositoryId("org", "store");

/** Time that passes during sleeps. */
class TestClock implements Clock {
  time = 0;
  now = (): number => this.time;
  monotonic = (): number => this.time;
  sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
    await Promise.resolve();
    signal?.throwIfAborted();
    this.time += ms;
  };
}

function testHydrations(pull: (options: PullOptions) => Promise<PullResult>) {
  const clock = new TestClock();
  const faults: unknown[] = [];
  let pulls = 0;
  const hydrations = new Hydrations({
    sync: {
      pull: async (_, options) => {
        pulls++;
        return await pull(options);
      },
    },
    isPurging: () => false,
    faults: { once: (_, error) => void faults.push(error) },
    clock,
    stopping: new AbortController().signal,
  });
  return { hydrations, clock, faults, pulls: () => pulls };
}

describe("Hydrations", () => {
  it("requests that wait share one transfer", async () => {
    const done = Promise.withResolvers<PullResult>();
    const { hydrations, pulls } = testHydrations(async () => done.promise);
    const waiting = [1, 2, 3].map(async () => hydrations.refresh(ID, Infinity));
    done.resolve({ manifest: undefined, changed: true });
    assert.deepEqual(await Promise.all(waiting), [true, true, true]);
    assert.equal(pulls(), 1);
    await hydrations.refresh(ID, Infinity);
    assert.equal(pulls(), 2);
  });

  it("a failure is logged, and is not tried again for 30 seconds", async () => {
    const { hydrations, clock, faults, pulls } = testHydrations(() => Promise.reject(new Error("gone")));
    assert.equal(await hydrations.refresh(ID, Infinity), false);
    assert.equal(await hydrations.refresh(ID, Infinity), false);
    assert.deepEqual([pulls(), faults.length], [1, 1]);
    clock.time += 31_000;
    await hydrations.refresh(ID, Infinity);
    assert.equal(pulls(), 2);
  });

  it("a request waits for its time, and the transfer goes on after that", async () => {
    const done = Promise.withResolvers<PullResult>();
    const { hydrations, clock, pulls } = testHydrations(async ({ progress }) => {
      progress?.begin(100);
      progress?.add(99);
      return await done.promise;
    });
    assert.equal(await hydrations.refresh(ID, 3000), false);
    assert.equal(clock.time, 3000);
    done.resolve({ manifest: undefined, changed: true });
    assert.equal(await hydrations.refresh(ID, 3000), true);
    assert.equal(pulls(), 1);
  });

  it("nobody waits longer than five seconds for a transfer that takes long", async () => {
    for (const received of [0, 1]) {
      const { hydrations, clock } = testHydrations(async ({ progress }) => {
        progress?.begin(1000);
        progress?.add(received);
        return await Promise.withResolvers<PullResult>().promise;
      });
      assert.equal(await hydrations.refresh(ID, Infinity), false);
      assert.ok(clock.time >= 5000 && clock.time < 6000, String(clock.time));
    }
  });

  it("a transfer whose end is near is worth waiting for", () => {
    const clock = new TestClock();
    const progress = new TransferProgress(clock);
    progress.begin(200);
    progress.add(100);
    clock.time = 8000;
    assert.ok(progress.isWorthWaiting);
    clock.time = 12_000;
    assert.ok(!progress.isWorthWaiting, "it would take 12 more seconds");
    progress.add(90);
    assert.ok(progress.isWorthWaiting);
  });
});
