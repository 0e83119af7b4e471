import type { Costs } from "./model/costs.ts";
import type { Outcome } from "./model/outcome.ts";
import { KINDS } from "./model/kinds.ts";
import { simulate } from "./model/run.ts";
import type { Scenario } from "./model/scenario.ts";

/** Use of a resource of an instance above which there is no reserve for a busier minute. */
export const MAX_UTILISATION = 0.8;
/** Number of instances above which the search ends. */
const MAX_INSTANCES = 128;
/** Jobs in flight at the end, against the average, from which on a queue is taken as growing. */
const GROWTH = 2;
const FEW_JOBS = 20;

/** The smallest number of instances that serves a load. */
export interface Enough {
  /** Undefined: no number up to the limit does; `outcome` is of the largest one that was tried. */
  readonly instances: number | undefined;
  readonly outcome: Outcome;
  /** Reasons why one instance less is not enough; empty if one instance is. */
  readonly reasons: readonly string[];
}

/** Reasons why an outcome is not good enough; empty: it is. @param p99Seconds maximum delay, 99th percentile */
export function shortcomings(outcome: Outcome, p99Seconds: number): string[] {
  const reasons: string[] = [];
  if (outcome.refused > 0) reasons.push(`${outcome.refused} jobs are refused`);
  if (outcome.inFlightAtEnd > GROWTH * outcome.inFlightAverage + FEW_JOBS) reasons.push("a queue grows");
  if (outcome.delay.p99 > p99Seconds)
    reasons.push(`p99 of the delay is ${outcome.delay.p99.toFixed(1)} s, above ${p99Seconds} s`);
  for (const { resource, share, perInstance } of outcome.utilisations)
    if (perInstance && share > MAX_UTILISATION)
      reasons.push(`${resource}: ${Math.round(share * 100)} % in use`);
  return reasons;
}

/**
 * Doubles the instances until they are enough, then searches between the last two numbers. It begins with the number that the
 * requests for refs and stored responses alone need.
 */
export function enoughInstances(scenario: Scenario, costs: Costs, p99Seconds: number): Enough {
  const tried = new Map<number, Outcome>();
  const reasonsOf = (instances: number): string[] => {
    const outcome = tried.get(instances) ?? simulate({ ...scenario, instances }, costs);
    tried.set(instances, outcome);
    return shortcomings(outcome, p99Seconds);
  };
  let high = Math.max(1, Math.ceil(leastCores(scenario, costs) / MAX_UTILISATION));
  let low = high - 1;
  let reasons: readonly string[] = low === 0 ? [] : ["requests for refs and stored responses need more"];
  for (;;) {
    const found = reasonsOf(high);
    if (found.length === 0) break;
    reasons = found;
    if (high >= MAX_INSTANCES) return { instances: undefined, outcome: tried.get(high)!, reasons };
    [low, high] = [high, Math.min(MAX_INSTANCES, high * 2)];
  }
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    const found = reasonsOf(middle);
    if (found.length === 0) high = middle;
    else [low, reasons] = [middle, found];
  }
  return { instances: high, outcome: tried.get(high)!, reasons };
}

/** Main threads that the jobs need if each response is stored and small. */
function leastCores({ load }: Scenario, costs: Costs): number {
  if (load.kind === "closed") return 0;
  const smallest = Math.min(...KINDS.map((kind) => costs.repeat[kind].fixed));
  return load.jobsPerSecond * (costs.info + costs.lsRefs + smallest);
}
