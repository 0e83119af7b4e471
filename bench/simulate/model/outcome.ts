import { HOUR_SECONDS } from "../../lib/figures.ts";
import { percentile } from "../../lib/statistics.ts";
import type { Fleet } from "./fleet.ts";
import type { Instance } from "./instance.ts";
import { KINDS, type Kind } from "./kinds.ts";

/** Use of one resource, the busiest of its kind. */
export interface Utilisation {
  readonly resource: string;
  /** 1: it is the limit. */
  readonly share: number;
  /** Whether more instances lower it. */
  readonly perInstance: boolean;
}

export interface Latency {
  readonly jobs: number;
  readonly mean: number;
  readonly p50: number;
  readonly p99: number;
}

/** Result of a simulation. Rates are in a second; sizes in bytes. */
export interface Outcome {
  readonly instances: number;
  readonly seconds: number;
  readonly arrived: number;
  readonly served: number;
  readonly refused: number;
  readonly inFlightAtBegin: number;
  readonly inFlightAtEnd: number;
  readonly inFlightAverage: number;
  readonly jobsPerSecond: number;
  readonly latency: Latency;
  /** Latency without the transfers at the clients' own rate. */
  readonly delay: Latency;
  readonly byKind: Readonly<Partial<Record<Kind, Latency>>>;
  readonly hitShare: number;
  readonly egress: number;
  readonly egressOfBusiest: number;
  /** Cores that all instances use on average, and the balancer. */
  readonly cores: number;
  readonly coresOfBusiest: number;
  readonly balancerCores: number;
  readonly memoryOfBusiest: number;
  /** Bytes on all disks at the end, and written and read in a second. */
  readonly disk: number;
  readonly diskWritten: number;
  readonly diskRead: number;
  readonly bucketGets: number;
  readonly bucketPuts: number;
  readonly bucketRead: number;
  readonly bucketWritten: number;
  readonly transactions: number;
  readonly hostReads: number;
  readonly hostReadsOfBusiest: number;
  readonly hostFetches: number;
  readonly hostBytes: number;
  readonly utilisations: readonly Utilisation[];
}

/** Reads the sums of a fleet. @param inFlightAtBegin jobs at the begin of the period that counts */
export function outcomeOf(fleet: Fleet, inFlightAtBegin: number): Outcome {
  const { counters, instances, scenario, costs } = fleet;
  const { seconds } = scenario;
  const rate = (count: number): number => count / seconds;
  const most = (of: (instance: Instance) => number): number => Math.max(...instances.map(of));
  const durations = counters.finished.map((each) => each.seconds);
  const reads = Math.max(0, ...counters.readsOfRepository.values());
  const answered = counters.hits + counters.misses;
  const egressOf = ({ network }: Instance): number => rate(network.work);
  const background = instances.length * costs.database.backgroundPerSecond;
  return {
    instances: instances.length,
    seconds,
    arrived: counters.arrived,
    served: counters.served,
    refused: counters.refused,
    inFlightAtBegin,
    inFlightAtEnd: fleet.inFlight.level,
    inFlightAverage: fleet.inFlight.average,
    jobsPerSecond: rate(counters.served),
    latency: latencyOf(durations),
    delay: latencyOf(counters.finished.map((each) => each.delay)),
    byKind: Object.fromEntries(
      KINDS.flatMap((kind) => {
        const own = counters.finished.filter((each) => each.kind === kind).map((each) => each.seconds);
        return own.length === 0 ? [] : [[kind, latencyOf(own)]];
      }),
    ),
    hitShare: answered === 0 ? 1 : counters.hits / answered,
    egress: rate(counters.egress),
    egressOfBusiest: most(egressOf),
    cores: rate(instances.reduce((sum, { cpu }) => sum + cpu, 0)),
    coresOfBusiest: rate(most(({ cpu }) => cpu)),
    balancerCores: rate(counters.balancerCpu),
    memoryOfBusiest: most(({ memory }) => memory.peak),
    disk: instances.reduce((sum, { local }) => sum + local.bytes, 0),
    diskWritten: rate(counters.diskWritten),
    diskRead: rate(counters.diskRead),
    bucketGets: rate(counters.gets) + manifestReads(fleet),
    bucketPuts: rate(counters.puts),
    bucketRead: rate(counters.bucketRead),
    bucketWritten: rate(counters.bucketWritten),
    transactions: rate(counters.transactions) + background,
    hostReads: rate(counters.hostReads),
    hostReadsOfBusiest: rate(reads),
    hostFetches: rate(counters.hostFetches),
    hostBytes: rate(counters.hostBytes),
    utilisations: utilisationsOf(fleet, rate(reads)),
  };
}

/** Resources by their use, the busiest first. */
function utilisationsOf(fleet: Fleet, busiestReads: number): Utilisation[] {
  const { instances, scenario, database, others } = fleet;
  const { seconds, machine } = scenario;
  const most = (resource: string, of: (instance: Instance) => number): Utilisation => ({
    resource,
    share: Math.max(...instances.map(of)),
    perInstance: true,
  });
  const all: Utilisation[] = [
    most("main thread of an instance", (instance) => instance.mainUtilisation(seconds)),
    most("network of an instance", ({ network }) => network.utilisation),
    most("disk of an instance", ({ disk }) => disk.utilisation),
    most("memory of an instance", ({ memory }) => memory.peak / machine.memory),
    most("places for fetches from the code host", ({ upstreamPlaces }) => upstreamPlaces.utilisation),
    most("places for large responses", ({ responsePlaces }) => responsePlaces.utilisation),
    { resource: "database", share: database.utilisation, perInstance: false },
    {
      resource: "code host, reads of the busiest repository",
      share: busiestReads / scenario.codeHost.repositoryReads,
      perInstance: false,
    },
  ];
  if (others === undefined)
    all.push(most("cores of an instance", (instance) => instance.utilisation(seconds)));
  else {
    const { cores, balancer, client } = others;
    all.push(
      { resource: "cores of the machine", share: cores.utilisation, perInstance: false },
      { resource: "balancer", share: balancer.work / seconds, perInstance: false },
      { resource: "client", share: client.work / seconds, perInstance: false },
    );
  }
  return all.toSorted((one, other) => other.share - one.share);
}

/** GETs of manifests in the background: of each repository that an instance used in the last hour. */
function manifestReads({ counters, instances, scenario, costs, repositories }: Fleet): number {
  const perSecond = costs.bucket.manifestReadsPerSecond;
  if (scenario.load.kind !== "pushed")
    return instances.reduce((sum, { used }) => sum + used.size, 0) * perSecond;
  const { jobsPerSecond, jobsPerPush } = scenario.load;
  const expected = repositories.expectedInUse((jobsPerSecond / jobsPerPush) * HOUR_SECONDS);
  const copies = scenario.balance === "random" ? instances.length : 1;
  return counters.arrived === 0 ? 0 : expected * copies * perSecond;
}

function latencyOf(durations: readonly number[]): Latency {
  const mean = durations.reduce((sum, each) => sum + each, 0) / Math.max(1, durations.length);
  return { jobs: durations.length, mean, p50: percentile(durations, 0.5), p99: percentile(durations, 0.99) };
}
