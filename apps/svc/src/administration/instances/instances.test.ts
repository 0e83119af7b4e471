import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../access/manual-clock.test-kit.ts";
import { NO_STATS } from "../../assemble/administration.test-kit.ts";
import type { ReportedInstance } from "../../storage/coordination-store.ts";
import { Activity } from "../../telemetry/activity.ts";
import { figuresText } from "./instance-figures.ts";
import { Instances } from "./instances.ts";

const WIDGETS = { owner: "Acme", name: "Widgets" };
const OWN = { ...NO_STATS, misses: 1 };

/** An instance with another one, whose figures were one second old when they were read. */
function twoInstances() {
  const clock = new ManualClock();
  const stats = { ...NO_STATS, hits: 40, lastFetchAt: clock.now() };
  const reported: Omit<ReportedInstance, "id"> = {
    hostName: "host",
    version: "1.0.0",
    ready: true,
    uptimeMs: 0,
    reportAgeMs: 0,
    address: undefined,
    manifestKeyId: undefined,
    settingsDigests: undefined,
    figures: figuresText(new Activity(clock).snapshot(), [{ key: "acme/widgets", stats }], clock.now()),
    figuresAgeMs: 1000,
  };
  let reads = 0;
  let isThere = true;
  const instances = new Instances({
    registry: {
      id: "this",
      list: async () => {
        if (!isThere) throw new Error("away");
        reads++;
        return [
          { ...reported, id: "this" },
          { ...reported, id: "other" },
        ];
      },
    },
    clock,
  });
  return { clock, instances, reads: () => reads, leave: () => void (isThere = false) };
}

describe("figures of all instances", () => {
  it("are those of this instance before the first read", () => {
    const known = twoInstances().instances.known();
    assert.deepEqual(known.summed, { count: 1, oldestMs: 0 });
    assert.deepEqual(known.stats(OWN, WIDGETS), OWN);
    assert.deepEqual(known.instances, []);
  });

  it("are read again after five seconds, and found by a name in any case", async () => {
    const { clock, instances, reads } = twoInstances();
    await instances.figures();
    clock.ms += 4999;
    const { hits, misses } = (await instances.figures()).stats(OWN, WIDGETS);
    assert.deepEqual([hits, misses, reads()], [40, 1, 1]);
    clock.ms += 1;
    await instances.figures();
    assert.equal(reads(), 2);
  });

  it("age by the time since they were read, also while the database is away", async () => {
    const { clock, instances, leave } = twoInstances();
    const { lastFetchAt } = (await instances.figures()).stats(OWN, WIDGETS);
    clock.ms += 60_000;
    assert.deepEqual(instances.known().summed, { count: 2, oldestMs: 61_000 });
    assert.equal(instances.known().stats(OWN, WIDGETS).lastFetchAt, lastFetchAt);
    leave();
    assert.deepEqual((await instances.figures()).summed, { count: 2, oldestMs: 61_000 });
  });
});
