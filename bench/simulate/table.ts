import { tableLines } from "@devplat/base/terminal";
import { HOUR_SECONDS, quantity } from "../lib/figures.ts";
import type { Enough } from "./enough.ts";
import { KIND_NAMES, KINDS } from "./model/kinds.ts";
import type { Outcome, Utilisation } from "./model/outcome.ts";
import type { Effect } from "./sensitivity.ts";

/** Resources of the list of the busiest ones. */
const SHOWN_RESOURCES = 5;

/** One line of a table. */
export type TableLine = readonly [what: string, value: string];

/** The figures of an outcome, for people. */
export function linesOf(outcome: Outcome): TableLine[] {
  const number = (value: number): string => Number(value.toPrecision(3)).toLocaleString("en-US");
  const hourly = (perSecond: number): string => number(perSecond * HOUR_SECONDS);
  const gigabit = (bytes: number): string => `${number((bytes * 8) / 1e9)} Gbit/s`;
  const gigabytes = (bytes: number): string => `${number(bytes / 1e9)} GB`;
  return [
    ["instances", String(outcome.instances)],
    ["jobs in an hour", hourly(outcome.jobsPerSecond)],
    ["clones in a second", number(outcome.jobsPerSecond)],
    ["jobs refused", number(outcome.refused)],
    [
      "time of a job, p50 and p99",
      `${quantity(outcome.latency.p50, "s")}, ${quantity(outcome.latency.p99, "s")}`,
    ],
    [
      "the same without the transfer at the client's rate",
      `${quantity(outcome.delay.p50, "s")}, ${quantity(outcome.delay.p99, "s")}`,
    ],
    ...KINDS.flatMap((kind): TableLine[] => {
      const own = outcome.byKind[kind];
      if (own === undefined) return [];
      return [[`${KIND_NAMES[kind]}, p50 and p99`, `${quantity(own.p50, "s")}, ${quantity(own.p99, "s")}`]];
    }),
    ["fetches served from the cache", `${number(outcome.hitShare * 100)} %`],
    ["egress of all instances", gigabit(outcome.egress)],
    ["egress of the busiest instance", gigabit(outcome.egressOfBusiest)],
    ["cores in use, all instances", number(outcome.cores)],
    ["cores in use, busiest instance", number(outcome.coresOfBusiest)],
    ["cores in use, balancer without TLS", number(outcome.balancerCores)],
    ["memory of the process, busiest instance, peak", gigabytes(outcome.memoryOfBusiest)],
    ["disk of all instances", gigabytes(outcome.disk)],
    ["written to the disks in an hour", gigabytes(outcome.diskWritten * HOUR_SECONDS)],
    ["bucket: GETs in an hour", hourly(outcome.bucketGets)],
    ["bucket: PUTs in an hour", hourly(outcome.bucketPuts)],
    ["bucket: written in an hour", gigabytes(outcome.bucketWritten * HOUR_SECONDS)],
    ["bucket: read in an hour", gigabytes(outcome.bucketRead * HOUR_SECONDS)],
    ["database: transactions in a second", number(outcome.transactions)],
    ["code host: reads of refs in a second", number(outcome.hostReads)],
    ["code host: reads of the busiest repository", `${number(outcome.hostReadsOfBusiest)} in a second`],
    ["code host: fetches in an hour", hourly(outcome.hostFetches)],
    ["code host: bytes of fetches in an hour", gigabytes(outcome.hostBytes * HOUR_SECONDS)],
  ];
}

/** The resource that is the limit first, with the load at which it is. */
export function bottleneckText({ utilisations, jobsPerSecond }: Outcome): string {
  const [first] = utilisations;
  if (first === undefined) return "";
  const jobs = Number(((jobsPerSecond * HOUR_SECONDS) / first.share).toPrecision(2)).toLocaleString("en-US");
  return `First bottleneck: ${first.resource}, ${percent(first)} of its limit. It is the limit at about ${jobs} jobs in an hour.`;
}

export function percent({ share }: Pick<Utilisation, "share">): string {
  return `${Number((share * 100).toPrecision(2))} %`;
}

/** Text of an outcome for a terminal. */
export function outcomeText(outcome: Outcome): string {
  const busiest = outcome.utilisations.slice(0, SHOWN_RESOURCES);
  return [
    ...tableLines(["figure", "value"], linesOf(outcome)),
    "",
    bottleneckText(outcome),
    "",
    ...tableLines(
      ["busiest resource", "use"],
      busiest.map((each) => [each.resource, percent(each)]),
    ),
  ].join("\n");
}

export function enoughText({ instances, reasons }: Enough): string {
  if (instances === undefined) return `No number of instances is enough: ${reasons.join("; ")}.`;
  const fewer = instances === 1 ? "" : ` One less is not: ${reasons.join("; ")}.`;
  return `${instances} instance${instances === 1 ? " is" : "s are"} enough.${fewer}`;
}

export function signed(change: number): string {
  const value = Math.round(change * 100);
  return `${value > 0 ? "+" : ""}${value} %`;
}

export function sensitivityText(effects: readonly Effect[]): string {
  const rows = effects.map(({ input, busiest, delay, egress }) => [
    input,
    signed(busiest),
    signed(delay),
    signed(egress),
  ]);
  return tableLines(["raised by half", "busiest resource", "delay, p99", "egress"], rows).join("\n");
}
