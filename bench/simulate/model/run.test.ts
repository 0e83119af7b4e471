import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { ROUND_COSTS, SMALL } from "./costs.test-kit.ts";
import { simulate } from "./run.ts";
import type { Scenario } from "./scenario.ts";

/** Scenarios of every kind: idle and overloaded, with and without pushes, warm and cold, on one machine and on several. */
const SCENARIOS: fc.Arbitrary<Scenario> = fc
  .record({
    seed: fc.integer({ min: 1, max: 1000 }),
    instances: fc.integer({ min: 1, max: 5 }),
    balance: fc.constantFrom("repository" as const, "random" as const),
    start: fc.constantFrom("warm" as const, "cold" as const),
    oneMachine: fc.boolean(),
    load: fc.oneof(
      fc.record({
        kind: fc.constant("pushed" as const),
        jobsPerSecond: fc.double({ min: 0.5, max: 60, noNaN: true }),
        jobsPerPush: fc.integer({ min: 1, max: 20 }),
        spread: fc.constantFrom(1, 10),
      }),
      fc.record({
        kind: fc.constant("steady" as const),
        jobsPerSecond: fc.double({ min: 0.5, max: 60, noNaN: true }),
        pushesPerSecond: fc.constantFrom(0, 0.5),
      }),
      fc.record({
        kind: fc.constant("closed" as const),
        clients: fc.integer({ min: 1, max: 30 }),
        pushesPerSecond: fc.constantFrom(0, 0.5),
      }),
    ),
    enforced: fc.boolean(),
    credentials: fc.constantFrom(0, 3),
    disk: fc.constantFrom(1e8, 5e11),
  })
  .map(({ enforced, credentials, disk, ...rest }) => ({
    ...SMALL,
    ...rest,
    machine: { ...SMALL.machine, disk },
    codeHost: { ...SMALL.codeHost, enforced },
    client: { ...SMALL.client, credentials },
  }));

describe("the model of a fleet", () => {
  it("loses no job: arrived = served + refused + in flight", () => {
    fc.assert(
      fc.property(SCENARIOS, (scenario) => {
        const { arrived, served, refused, inFlightAtBegin, inFlightAtEnd } = simulate(scenario, ROUND_COSTS);
        assert.equal(inFlightAtBegin + arrived, served + refused + inFlightAtEnd);
      }),
      { numRuns: 12 },
    );
  });

  it("uses no resource above its capacity", () => {
    fc.assert(
      fc.property(SCENARIOS, (scenario) => {
        const { utilisations } = simulate(scenario, ROUND_COSTS);
        for (const { resource, share } of utilisations)
          if (!resource.startsWith("code host")) assert.ok(share >= 0 && share <= 1 + 1e-9, resource);
      }),
      { numRuns: 12 },
    );
  });

  it("gives equal results for equal seeds, and others for other seeds", () => {
    fc.assert(
      fc.property(SCENARIOS, (scenario) => {
        const [one, other] = [simulate(scenario, ROUND_COSTS), simulate(scenario, ROUND_COSTS)];
        assert.deepEqual(one, other);
      }),
      { numRuns: 4 },
    );
    assert.notDeepEqual(simulate(SMALL, ROUND_COSTS), simulate({ ...SMALL, seed: 2 }, ROUND_COSTS));
  });

  it("keeps Little's law for the jobs of a fleet that is not overloaded", () => {
    const scenario: Scenario = {
      ...SMALL,
      seconds: 600,
      load: { kind: "steady", jobsPerSecond: 10, pushesPerSecond: 0.1 },
    };
    const { inFlightAverage, jobsPerSecond, byKind, latency } = simulate(scenario, ROUND_COSTS);
    const sum = Object.values(byKind).reduce((total, { jobs, mean }) => total + jobs * mean, 0);
    const expected = (jobsPerSecond * sum) / latency.jobs;
    assert.ok(Math.abs(inFlightAverage - expected) < 0.02 * expected, `${inFlightAverage}, ${expected}`);
  });

  it("serves no less with more instances", () => {
    const load = { kind: "closed" as const, clients: 100, pushesPerSecond: 0.2 };
    for (const balance of ["repository", "random"] as const) {
      const rates = [1, 2, 4, 8].map(
        (instances) =>
          simulate({ ...SMALL, seconds: 15, warmUp: 5, balance, instances, load }, ROUND_COSTS).jobsPerSecond,
      );
      rates
        .slice(1)
        .forEach((rate, at) => assert.ok(rate >= 0.98 * rates[at]!, `${balance}: ${rates.join()}`));
      assert.ok(rates.at(-1)! > 1.5 * rates[0]!, `${balance}: ${rates.join()}`);
    }
  });

  it("serves no more with more instances if all share the same cores", () => {
    const load = { kind: "closed" as const, clients: 50, pushesPerSecond: 0 };
    const machine = { ...SMALL.machine, cores: 1 };
    const rates = [1, 4].map(
      (instances) =>
        simulate({ ...SMALL, oneMachine: true, machine, instances, load }, ROUND_COSTS).jobsPerSecond,
    );
    assert.ok(Math.abs(rates[0]! - rates[1]!) < 0.05 * rates[0]!, rates.join());
  });

  it("reads the code host twice for each job, and fetches once for each push", () => {
    const { hostReads, jobsPerSecond, hostFetches } = simulate(
      { ...SMALL, seconds: 600, instances: 4 },
      ROUND_COSTS,
    );
    assert.ok(Math.abs(hostReads / jobsPerSecond - 2) < 0.05);
    const perPush = hostFetches / (jobsPerSecond / 5);
    assert.ok(perPush > 0.8 && perPush < 1.3, `${perPush}`);
  });

  it("asks the code host again at an instance that has no authorization yet", () => {
    const { hostReads, jobsPerSecond } = simulate(
      { ...SMALL, seconds: 600, instances: 4, balance: "random" },
      ROUND_COSTS,
    );
    // Three of four fetches come to another instance than their `ls-refs`.
    assert.ok(Math.abs(hostReads / jobsPerSecond - 2.75) < 0.1);
  });

  it("asks the code host again when an authorization is older than grant_seconds", () => {
    const service = { ...SMALL.service, grantSeconds: 0 };
    const { hostReads, jobsPerSecond } = simulate({ ...SMALL, seconds: 600, service }, ROUND_COSTS);
    assert.ok(Math.abs(hostReads / jobsPerSecond - 3) < 0.05);
  });

  it("misses each repository once on a cold start", () => {
    const scenario: Scenario = { ...SMALL, start: "cold", warmUp: 0, seconds: 300 };
    const { hostFetches, hitShare } = simulate(scenario, ROUND_COSTS);
    assert.ok(hostFetches * 300 >= 15);
    assert.ok(hitShare > 0.85 && hitShare < 1);
  });

  it("reads more from the bucket if the balancer chooses at random", () => {
    const by = simulate({ ...SMALL, instances: 4 }, ROUND_COSTS);
    const random = simulate({ ...SMALL, instances: 4, balance: "random" }, ROUND_COSTS);
    assert.ok(random.bucketRead > by.bucketRead);
    assert.ok(random.disk > by.disk);
  });
});
