import type { Costs } from "./model/costs.ts";
import { byKind } from "./model/kinds.ts";
import { scaled } from "./model/line.ts";
import type { Outcome } from "./model/outcome.ts";
import { simulate } from "./model/run.ts";
import type { Scenario } from "./model/scenario.ts";

/** Change of an input: half as much again. */
const FACTOR = 1.5;

/** Effect of one input. */
export interface Effect {
  readonly input: string;
  /** Change of the busiest resource of an instance, of the delay (p99) and of the egress: 0.1 is 10 % more. */
  readonly busiest: number;
  readonly delay: number;
  readonly egress: number;
}

interface Inputs {
  readonly scenario: Scenario;
  readonly costs: Costs;
}

/** Each input, raised by half. */
const CHANGES: Readonly<Record<string, (inputs: Inputs) => Inputs>> = {
  "jobs in an hour": ({ scenario, costs }) => ({
    costs,
    scenario: {
      ...scenario,
      load:
        scenario.load.kind === "closed"
          ? scenario.load
          : { ...scenario.load, jobsPerSecond: scenario.load.jobsPerSecond * FACTOR },
    },
  }),
  "jobs of a push": ({ scenario, costs }) => ({
    costs,
    scenario: {
      ...scenario,
      load:
        scenario.load.kind === "pushed"
          ? { ...scenario.load, jobsPerPush: Math.round(scenario.load.jobsPerPush * FACTOR) }
          : scenario.load,
    },
  }),
  "size of a repository": ({ scenario, costs }) => ({
    costs,
    scenario: {
      ...scenario,
      repositories: {
        ...scenario.repositories,
        medianBytes: scenario.repositories.medianBytes * FACTOR,
        maxBytes: scenario.repositories.maxBytes * FACTOR,
      },
    },
  }),
  "bytes of a clone with depth 1": ({ scenario, costs }) => ({
    scenario,
    costs: { ...costs, size: { ...costs.size, shallow: costs.size.shallow * FACTOR } },
  }),
  "share of full clones": ({ scenario, costs }) => ({
    costs,
    scenario: { ...scenario, mix: { ...scenario.mix, full: scenario.mix.full * FACTOR } },
  }),
  "Zipf exponent": ({ scenario, costs }) => ({
    costs,
    scenario: {
      ...scenario,
      repositories: { ...scenario.repositories, zipf: scenario.repositories.zipf * FACTOR },
    },
  }),
  "CPU of a stored response": ({ scenario, costs }) => ({
    scenario,
    costs: { ...costs, repeat: byKind((kind) => scaled(costs.repeat[kind], FACTOR)) },
  }),
  "CPU of a response from the mirror": ({ scenario, costs }) => ({
    scenario,
    costs: { ...costs, built: byKind((kind) => scaled(costs.built[kind], FACTOR)) },
  }),
  "CPU of info/refs and ls-refs": ({ scenario, costs }) => ({
    scenario,
    costs: { ...costs, info: costs.info * FACTOR, lsRefs: costs.lsRefs * FACTOR },
  }),
  "time of the code host": ({ scenario, costs }) => ({
    costs,
    scenario: {
      ...scenario,
      codeHost: {
        ...scenario.codeHost,
        readSeconds: scenario.codeHost.readSeconds * FACTOR,
        fetchSeconds: scenario.codeHost.fetchSeconds * FACTOR,
      },
    },
  }),
  "rate of a client": ({ scenario, costs }) => ({
    costs,
    scenario: { ...scenario, client: { ...scenario.client, rate: scenario.client.rate * FACTOR } },
  }),
};

/** Effects of the inputs, the largest first. The same random numbers are used for all. */
export function sensitivityOf(scenario: Scenario, costs: Costs): Effect[] {
  const base = simulate(scenario, costs);
  const ratio = (one: number, other: number): number => (other === 0 ? 0 : one / other - 1);
  return Object.entries(CHANGES)
    .map(([input, change]): Effect => {
      const inputs = change({ scenario, costs });
      const outcome = simulate(inputs.scenario, inputs.costs);
      return {
        input,
        busiest: ratio(busiestOf(outcome), busiestOf(base)),
        delay: ratio(outcome.delay.p99, base.delay.p99),
        egress: ratio(outcome.egress, base.egress),
      };
    })
    .toSorted((one, other) => weightOf(other) - weightOf(one));
}

function busiestOf({ utilisations }: Outcome): number {
  return utilisations.find(({ perInstance }) => perInstance)?.share ?? 0;
}

function weightOf({ busiest, delay }: Effect): number {
  return Math.abs(busiest) + Math.abs(delay);
}
