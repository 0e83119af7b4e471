import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { enoughInstances, shortcomings } from "./enough.ts";
import { ROUND_COSTS, SMALL } from "./model/costs.test-kit.ts";
import { simulate } from "./model/run.ts";
import type { Scenario } from "./model/scenario.ts";
import { sensitivityOf } from "./sensitivity.ts";
import { bottleneckText, outcomeText } from "./table.ts";

const P99_SECONDS = 5;
const loadOf = (jobsPerSecond: number): Scenario => ({
  ...SMALL,
  repositories: { ...SMALL.repositories, zipf: 0, count: 200 },
  load: { kind: "steady", jobsPerSecond, pushesPerSecond: 0 },
});

describe("the number of instances that is enough", () => {
  it("is one for a small load", () => {
    const { instances, reasons } = enoughInstances(loadOf(2), ROUND_COSTS, P99_SECONDS);
    assert.deepEqual([instances, reasons], [1, []]);
  });

  it("serves the load, and one instance less does not", () => {
    const scenario = loadOf(250);
    const { instances = 0, outcome, reasons } = enoughInstances(scenario, ROUND_COSTS, P99_SECONDS);
    assert.ok(instances > 2, String(instances));
    assert.deepEqual(shortcomings(outcome, P99_SECONDS), []);
    const fewer = simulate({ ...scenario, instances: instances - 1 }, ROUND_COSTS);
    assert.notDeepEqual(shortcomings(fewer, P99_SECONDS), []);
    assert.ok(reasons.length > 0);
  });

  it("is not there for a limit that instances do not change", () => {
    const { instances, reasons } = enoughInstances(loadOf(2), ROUND_COSTS, 0.01);
    assert.equal(instances, undefined);
    assert.match(reasons.join(), /p99 of the delay/);
  });
});

describe("the output", () => {
  const outcome = simulate(SMALL, ROUND_COSTS);

  it("names the first bottleneck with its use", () => {
    assert.match(
      bottleneckText(outcome),
      /^First bottleneck: .+, [\d.]+ % of its limit\. .*jobs in an hour\.$/,
    );
    assert.match(outcomeText(outcome), /egress of all instances +[\d.]+ Gbit\/s/);
  });

  it("lists the inputs by their effect", () => {
    const effects = sensitivityOf(SMALL, ROUND_COSTS);
    assert.ok(effects.length > 8);
    const load = effects.find(({ input }) => input === "jobs in an hour");
    assert.ok((load?.egress ?? 0) > 0.2, JSON.stringify(load));
  });
});
