import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { HOUR_SECONDS } from "../lib/figures.ts";
import type { Results } from "../lib/find-row.ts";
import { enoughInstances, type Enough } from "./enough.ts";
import type { Costs } from "./model/costs.ts";
import type { Outcome } from "./model/outcome.ts";
import { readCosts } from "./model/read-costs.ts";
import { simulate } from "./model/run.ts";
import { FLEET, type Scenario } from "./model/scenario.ts";
import { sensitivityOf, type Effect } from "./sensitivity.ts";

/** Answers of the model that docs/scale.md prints. */
export interface Answers {
  /** Costs that they were made with. If a benchmark gives others, the answers are old. */
  readonly costs: Costs;
  readonly loads: readonly AnsweredLoad[];
  /** A short run. If the model gives another outcome, the answers are old. */
  readonly check: Outcome;
}

/** A load, and the instances that it needs. */
export interface AnsweredLoad {
  readonly jobsPerHour: number;
  readonly scenario: Scenario;
  readonly enough: Enough;
  /** Outcomes of other numbers of instances. */
  readonly others: readonly Outcome[];
  readonly effects: readonly Effect[];
}

const FILE = join(import.meta.dirname, "answers.json");
/** Maximum delay of a job, 99th percentile. */
export const P99_SECONDS = 5;

/** The two loads of the page. The larger one has more repositories, and a shorter time that counts. */
const SMALL_LOAD = loadOf(10_000, 500, 1800);
const LARGE_LOAD = loadOf(1_000_000, 20_000, 60);

function loadOf(jobsPerHour: number, count: number, seconds: number): Scenario {
  return {
    ...FLEET,
    seconds,
    load: { ...FLEET.load, kind: "pushed", jobsPerSecond: jobsPerHour / HOUR_SECONDS } as Scenario["load"],
    repositories: { ...FLEET.repositories, count },
  };
}

/** The short run of {@link Answers.check}. */
export function checkOutcome(costs: Costs): Outcome {
  return simulate({ ...SMALL_LOAD, seconds: 60, warmUp: 60, instances: 2 }, costs);
}

export function readAnswers(): Answers {
  return JSON.parse(readFileSync(FILE, "utf8")) as Answers;
}

/** Simulates everything that the page prints. */
export function writeAnswers(results: Results): void {
  const costs = readCosts(results);
  const answer = (scenario: Scenario, counts: readonly number[]): AnsweredLoad => {
    const enough = enoughInstances(scenario, costs, P99_SECONDS);
    const load = scenario.load as Extract<Scenario["load"], { kind: "pushed" }>;
    return {
      jobsPerHour: load.jobsPerSecond * HOUR_SECONDS,
      scenario,
      enough,
      others: counts.map((instances) => simulate({ ...scenario, instances }, costs)),
      effects: sensitivityOf({ ...scenario, instances: enough.instances ?? enough.outcome.instances }, costs),
    };
  };
  const answers: Answers = {
    costs,
    loads: [answer(SMALL_LOAD, [1, 2, 4]), answer(LARGE_LOAD, [])],
    check: checkOutcome(costs),
  };
  writeFileSync(FILE, `${JSON.stringify(answers, rounded, 1)}\n`);
}

/** Digits of a stored figure: enough for every table, and the same on every machine. */
const DIGITS = 6;

/** Replacer of JSON that rounds figures. */
export function rounded(_key: string, value: unknown): unknown {
  return typeof value === "number" ? Number(value.toPrecision(DIGITS)) : value;
}
