import { HOUR_SECONDS } from "../../lib/figures.ts";
import type { Kind } from "./kinds.ts";

/** One machine of an instance. Bytes, and bytes in a second. */
export interface MachineShape {
  readonly cores: number;
  readonly memory: number;
  readonly disk: number;
  readonly diskRate: number;
  readonly network: number;
}

/**
 * Arrivals: jobs that pushes start; or jobs at random times; or a fixed number of clients that each begin the next job when
 * one ends.
 */
export type Load =
  | {
      readonly kind: "pushed";
      readonly jobsPerSecond: number;
      /** Jobs that a push starts. */
      readonly jobsPerPush: number;
      /** Mean seconds from the push to the begin of one of its jobs. */
      readonly spread: number;
    }
  | { readonly kind: "steady"; readonly jobsPerSecond: number; readonly pushesPerSecond: number }
  | { readonly kind: "closed"; readonly clients: number; readonly pushesPerSecond: number };

/** All inputs of a simulation that are not measured costs. */
export interface Scenario {
  readonly seed: number;
  /** Seconds that count, after seconds that do not. */
  readonly seconds: number;
  readonly warmUp: number;
  readonly instances: number;
  readonly balance: "repository" | "random";
  readonly machine: MachineShape;
  /** Whether all instances and all other programs share one machine, as on the test stand. */
  readonly oneMachine: boolean;
  readonly load: Load;
  readonly mix: Readonly<Record<Kind, number>>;
  readonly repositories: {
    readonly count: number;
    /** Exponent of the Zipf distribution of their popularity. */
    readonly zipf: number;
    readonly medianBytes: number;
    /** Standard deviation of the logarithm of the size; 0: all have the same. */
    readonly sigma: number;
    readonly maxBytes: number;
  };
  /** Mirrors that are there at the begin: at the instance that the balancer chooses, or none anywhere. */
  readonly start: "warm" | "cold";
  readonly client: {
    readonly rate: number;
    readonly roundTrip: number;
    /** Distinct credentials. 0: each job has its own. */
    readonly credentials: number;
    /** Whether the credentials are tokens of this service, which are looked up in the database. */
    readonly ownTokens: boolean;
  };
  readonly codeHost: {
    readonly roundTrip: number;
    /** Seconds until it answers a read of refs, and until a fetch begins. */
    readonly readSeconds: number;
    readonly fetchSeconds: number;
    readonly rate: number;
    /** Reads of one repository in a second that it recommends as the maximum. */
    readonly repositoryReads: number;
    /** Whether reads above {@link repositoryReads} are refused. */
    readonly enforced: boolean;
  };
  readonly bucket: { readonly roundTrip: number; readonly rate: number };
  readonly database: { readonly roundTrip: number; readonly maxTransactions: number };
  /** Configuration of the service. */
  readonly service: {
    readonly grantSeconds: number;
    readonly maxUpstreamFetches: number;
    readonly responsePlaces: number;
    readonly heavyBytes: number;
    readonly queueSeconds: number;
    readonly localShare: number;
    readonly shareFetches: boolean;
  };
}

const GIGABIT = 1e9 / 8;

/** Assumptions about a CI fleet. None is measured; the page names each. */
export const FLEET: Scenario = {
  seed: 1,
  seconds: 300,
  warmUp: 120,
  instances: 2,
  balance: "repository",
  machine: { cores: 4, memory: 16e9, disk: 500e9, diskRate: 500e6, network: 10 * GIGABIT },
  oneMachine: false,
  load: { kind: "pushed", jobsPerSecond: 10_000 / HOUR_SECONDS, jobsPerPush: 10, spread: 30 },
  mix: { full: 0.1, shallow: 0.7, blobless: 0.05, behind: 0.15 },
  repositories: { count: 500, zipf: 1, medianBytes: 40e6, sigma: 1.2, maxBytes: 5e9 },
  start: "warm",
  client: { rate: GIGABIT, roundTrip: 0.002, credentials: 0, ownTokens: true },
  codeHost: {
    roundTrip: 0.02,
    readSeconds: 0.1,
    fetchSeconds: 0.3,
    rate: 0.5 * GIGABIT,
    repositoryReads: 15,
    enforced: false,
  },
  bucket: { roundTrip: 0.02, rate: 0.8 * GIGABIT },
  database: { roundTrip: 0.001, maxTransactions: 5000 },
  service: {
    grantSeconds: 5,
    maxUpstreamFetches: 32,
    responsePlaces: 4,
    heavyBytes: 16e6,
    queueSeconds: 60,
    localShare: 0.8,
    shareFetches: true,
  },
};
