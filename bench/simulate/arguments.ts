import { parseArgs } from "node:util";
import { HOUR_SECONDS } from "../lib/figures.ts";
import { KINDS, type Kind } from "./model/kinds.ts";
import { FLEET, type Scenario } from "./model/scenario.ts";

const GIGABIT = 1e9 / 8;
const MEGABIT = 1e6 / 8;
const DEFAULT_P99_SECONDS = 5;

/** An option with a number. */
interface NumberOption {
  readonly help: string;
  readonly min: number;
  readonly max: number;
  readonly value: number;
  readonly integer?: true;
}

const fleetLoad = FLEET.load as Extract<Scenario["load"], { kind: "pushed" }>;
const NUMBERS = {
  "jobs-per-hour": { help: "CI jobs in an hour", min: 1, max: 1e7, value: 10_000 },
  instances: { help: "instances of svc", min: 1, max: 1000, value: FLEET.instances, integer: true },
  repositories: { help: "repositories", min: 1, max: 1e6, value: FLEET.repositories.count, integer: true },
  zipf: {
    help: "exponent of their popularity; 0: all the same",
    min: 0,
    max: 5,
    value: FLEET.repositories.zipf,
  },
  "repository-mb": {
    help: "median of their size",
    min: 0.01,
    max: 1e5,
    value: FLEET.repositories.medianBytes / 1e6,
  },
  "jobs-per-push": {
    help: "jobs that a push starts",
    min: 1,
    max: 1e4,
    value: fleetLoad.jobsPerPush,
    integer: true,
  },
  "spread-seconds": {
    help: "mean time from a push to one of its jobs",
    min: 0.001,
    max: 1e5,
    value: fleetLoad.spread,
  },
  cores: { help: "cores of an instance", min: 1, max: 1024, value: FLEET.machine.cores },
  "memory-gb": { help: "memory of an instance", min: 0.5, max: 1e5, value: FLEET.machine.memory / 1e9 },
  "disk-gb": { help: "disk of an instance", min: 1, max: 1e6, value: FLEET.machine.disk / 1e9 },
  "network-gbit": {
    help: "network of an instance",
    min: 0.01,
    max: 1e4,
    value: FLEET.machine.network / GIGABIT,
  },
  "client-mbit": { help: "network of a client", min: 1, max: 1e6, value: FLEET.client.rate / MEGABIT },
  "grant-seconds": { help: "cache.grant_seconds", min: 0, max: 3600, value: FLEET.service.grantSeconds },
  "host-ms": {
    help: "time of the code host for a read of refs",
    min: 0,
    max: 1e5,
    value: FLEET.codeHost.readSeconds * 1000,
  },
  seconds: { help: "simulated time that counts", min: 1, max: 1e6, value: FLEET.seconds },
  "warm-up-seconds": { help: "simulated time before it", min: 0, max: 1e6, value: FLEET.warmUp },
  "p99-seconds": {
    help: "maximum delay for --until-enough, 99th percentile",
    min: 0.001,
    max: 3600,
    value: DEFAULT_P99_SECONDS,
  },
  seed: { help: "seed of the random numbers", min: 0, max: 2 ** 31, value: FLEET.seed, integer: true },
} as const satisfies Readonly<Record<string, NumberOption>>;

type NumberName = keyof typeof NUMBERS;
const NUMBER_NAMES = Object.keys(NUMBERS) as NumberName[];

/** The command line of the simulation. */
export interface SimulateArguments {
  readonly help: boolean;
  readonly json: boolean;
  readonly untilEnough: boolean;
  readonly sensitivity: boolean;
  /** Write the answers of docs/scale.md. */
  readonly write: boolean;
  readonly p99Seconds: number;
  readonly scenario: Scenario;
}

export const HELP = `Usage: npm run simulate -- [options]

Simulate a fleet of svc under the load of a CI, with the costs that bench/results has.
docs/scale.md explains the model, and what it does not contain.

  --json              Print JSON.
  --until-enough      Search for the smallest number of instances that serves the load.
  --sensitivity       Raise each input by half, and print the effects.
  --balance <kind>    "repository" (default): the balancer keeps a repository on one
                      instance. "random": it takes any instance for each request.
  --mix <shares>      Kinds of jobs, default ${KINDS.map((kind) => `${kind}=${FLEET.mix[kind]}`).join(",")}.
  --cold              Begin with empty caches and an empty bucket.
  --enforce-reads     The code host refuses reads of a repository above ${FLEET.codeHost.repositoryReads} in a second.
  --write             Write the answers and the figures of docs/scale.md. Takes minutes.
  -h, --help          Show this text.

Numbers:
${NUMBER_NAMES.map((name) => `  --${`${name} <n>`.padEnd(20)}${NUMBERS[name].help} (default ${NUMBERS[name].value})`).join("\n")}
`;

/** @throws Error with what to do */
export function readArguments(args: readonly string[]): SimulateArguments {
  const { values, positionals } = parse(args);
  const [extra] = positionals;
  if (extra !== undefined)
    throw new Error(
      `Cannot use the argument ${JSON.stringify(extra)}: there are only options. Run npm run simulate -- --help`,
    );
  const number = (name: NumberName): number => readNumber(name, values[name] as string | undefined);
  const balance = values["balance"] ?? "repository";
  if (balance !== "repository" && balance !== "random")
    throw new Error(`Cannot use --balance ${JSON.stringify(balance)}: write "repository" or "random"`);
  return {
    help: values["help"] === true,
    json: values["json"] === true,
    untilEnough: values["until-enough"] === true,
    sensitivity: values["sensitivity"] === true,
    write: values["write"] === true,
    p99Seconds: number("p99-seconds"),
    scenario: {
      ...FLEET,
      seed: number("seed"),
      seconds: number("seconds"),
      warmUp: number("warm-up-seconds"),
      instances: number("instances"),
      balance,
      start: values["cold"] === true ? "cold" : "warm",
      machine: {
        ...FLEET.machine,
        cores: number("cores"),
        memory: number("memory-gb") * 1e9,
        disk: number("disk-gb") * 1e9,
        network: number("network-gbit") * GIGABIT,
      },
      load: {
        kind: "pushed",
        jobsPerSecond: number("jobs-per-hour") / HOUR_SECONDS,
        jobsPerPush: number("jobs-per-push"),
        spread: number("spread-seconds"),
      },
      mix: readMix(values["mix"] as string | undefined),
      repositories: {
        ...FLEET.repositories,
        count: number("repositories"),
        zipf: number("zipf"),
        medianBytes: number("repository-mb") * 1e6,
      },
      client: { ...FLEET.client, rate: number("client-mbit") * MEGABIT },
      codeHost: {
        ...FLEET.codeHost,
        readSeconds: number("host-ms") / 1000,
        enforced: values["enforce-reads"] === true,
      },
      service: { ...FLEET.service, grantSeconds: number("grant-seconds") },
    },
  };
}

interface Parsed {
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
  readonly positionals: readonly string[];
}

function parse(args: readonly string[]): Parsed {
  const flags = ["json", "until-enough", "sensitivity", "cold", "enforce-reads", "write"];
  const texts = ["balance", "mix", ...NUMBER_NAMES];
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { type: "boolean", short: "h" },
        ...Object.fromEntries(flags.map((name) => [name, { type: "boolean" as const }])),
        ...Object.fromEntries(texts.map((name) => [name, { type: "string" as const }])),
      },
      allowPositionals: true,
    }) as Parsed;
  } catch (error) {
    const [reason] = (error instanceof Error ? error.message : String(error)).split(/\. |\n/);
    throw new Error(`${reason}. Run npm run simulate -- --help`, { cause: error });
  }
}

function readNumber(name: NumberName, text: string | undefined): number {
  const { min, max, value, ...rest }: NumberOption = NUMBERS[name];
  if (text === undefined) return value;
  const number = text.trim() === "" ? Number.NaN : Number(text);
  const kind = rest.integer === true ? "whole number" : "number";
  if (number >= min && number <= max && (rest.integer !== true || Number.isInteger(number))) return number;
  throw new Error(`Cannot use --${name} ${JSON.stringify(text)}: it takes a ${kind} from ${min} to ${max}`);
}

function readMix(text: string | undefined): Readonly<Record<Kind, number>> {
  if (text === undefined) return FLEET.mix;
  const mix: Record<Kind, number> = { full: 0, shallow: 0, blobless: 0, behind: 0 };
  for (const part of text.split(",")) {
    const [name = "", share = ""] = part.split("=");
    const kind = KINDS.find((each) => each === name.trim());
    const value = share.trim() === "" ? Number.NaN : Number(share);
    if (kind === undefined || !(value >= 0) || value === Infinity)
      throw new Error(
        `Cannot use --mix ${JSON.stringify(text)}: write shares such as full=0.2,shallow=0.8, of the kinds ${KINDS.join(", ")}`,
      );
    mix[kind] = value;
  }
  if (KINDS.every((kind) => mix[kind] === 0))
    throw new Error(`Cannot use --mix ${JSON.stringify(text)}: at least one share must be above 0`);
  return mix;
}
