import { resolve } from "node:path";
import { HOUR_SECONDS, quantity } from "./figures.ts";
import { findRow, type Results } from "./find-row.ts";
import type { Row } from "./row.ts";

/** Page for operators. A part of it is written from the results. */
export const SIZING_PAGE = resolve(import.meta.dirname, "../../docs/svc/sizing.md");

/** Clones an hour in the example. */
const EXAMPLE_CLONES = 10_000;
/** Bytes of a clone of the repository "large", and of express. */
const LARGE_BYTES = 141e6;

/** A line of the table: a row of a result, and how to print it. */
interface Line {
  readonly label: string;
  readonly result: string;
  readonly row: RegExp;
  /** Print the ratio to the reference in place of the reference. */
  readonly ratio?: true;
}

const LINES: readonly Line[] = [
  { label: "stored clone of 10 MB over HTTP, CPU", result: "clone", row: /^express: warm raw fetch, framed/ },
  { label: "stored clone of 141 MB over HTTP, CPU", result: "clone", row: /^large: warm raw fetch, framed/ },
  { label: "the same, at its second use, CPU", result: "clone", row: /^large: warm raw fetch, second use/ },
  {
    label: "whole `git clone` of 10 MB (three requests), CPU",
    result: "clone",
    row: /^express: whole clone/,
  },
  {
    label: "stored clone of 10 MB over TLS with `server.accel`, CPU with nginx",
    result: "accel",
    row: /^express/,
  },
  {
    label: "stored clone of 141 MB over TLS with `server.accel`, CPU with nginx",
    result: "accel",
    row: /^large/,
  },
  { label: "fetch of 100 new commits (large), first time, CPU", result: "kinds", row: /^large: 100 .*first/ },
  {
    label: "fetch of 100 new commits (large), repeated, CPU",
    result: "kinds",
    row: /^large: 100 .*repeated/,
  },
  { label: "first clone of 141 MB and filling the mirror, CPU", result: "fill", row: /^large: CPU/ },
  {
    label: "first clone of 141 MB, wall time",
    result: "clone",
    row: /^large, separate cores: cold/,
    ratio: true,
  },
  {
    label: "later clone of 141 MB, wall time",
    result: "clone",
    row: /^large, separate cores: warm/,
    ratio: true,
  },
  { label: "memory, idle", result: "svc-start", row: /^release: idle memory, 10 s/ },
  { label: "memory, peak: first clone of 141 MB", result: "fill", row: /^large: peak memory/ },
  {
    label: "memory, peak: 200 concurrent stored clones of 141 MB",
    result: "concurrent",
    row: /^large: 200 .*memory/,
  },
  {
    label: "memory, peak: 40 concurrent clones with 60,000 branches",
    result: "many-refs",
    row: /warm, peak memory/,
  },
  { label: "disk after one clone of 141 MB", result: "disk", row: /^large: after one/, ratio: true },
  { label: "disk when clones of it repeat", result: "disk", row: /^large: .*three times/, ratio: true },
  {
    label: "bucket: stored clone of 141 MB from the local cache, CPU",
    result: "object",
    row: /^large: hit from the local tier/,
  },
  {
    label: "bucket: the same at an instance with an empty local cache, wall time",
    result: "object",
    row: /^large: first hit of an empty instance, wall, next to the code host/,
  },
  {
    label: "bucket: the same, memory above idle",
    result: "object",
    row: /^large: first hit of an empty instance, memory/,
  },
  { label: "bucket: upload of a response of 100 MB, CPU", result: "object", row: /^upload of a response/ },
  {
    label: "bucket: upload of a mirror of 162 MB, wall time",
    result: "object-mirror",
    row: /^large.*: upload of the mirror/,
  },
  {
    label: "bucket: a mirror of 162 MB, from an empty disk to the first pack, wall time",
    result: "object-mirror",
    row: /^large.*: the same/,
  },
];

/** The figures for operators, as a table and an example. */
export function sizingOf(results: Results): string {
  const lines = ["| What | `svc` | In the same run | Result |", "|---|---|---|---|"];
  for (const { label, result, row: pattern, ratio } of LINES) {
    const row = rowOf(results, result, pattern);
    const link = `[${result}](../../bench/results/${result}.md)`;
    lines.push(
      `| ${label} | ${quantity(row.ours.median, row.unit)} | ${ratio ? ratioText(row) : references(row)} | ${link} |`,
    );
  }
  lines.push("", exampleOf(results));
  return lines.join("\n");
}

/** References of a row. A limit is a target and not a measurement, so it is left out. */
function references({ reference, referenceName, others = [], unit }: Row): string {
  return [{ name: referenceName, value: reference }, ...others]
    .filter(({ name }) => name !== "the limit" && name !== "aimed at")
    .map(({ name, value }) => `${name} ${quantity(value.median, unit)}`)
    .join(", ");
}

function ratioText({ ours, reference, referenceName }: Row): string {
  return `${(ours.median / reference.median).toFixed(2)} times ${referenceName}`;
}

/** CPU and network of a fleet. Every figure is computed from the table. */
function exampleOf(results: Results): string {
  const perSecond = EXAMPLE_CLONES / HOUR_SECONDS;
  const cores = (seconds: number): string => (seconds * perSecond).toFixed(2);
  const plain = rowOf(results, "clone", /^large: warm raw fetch, framed/);
  const direct = plain.others?.find(({ name }) => name === "direct")?.value.median ?? Number.NaN;
  const tls = rowOf(results, "accel", /^large/);
  const network = (LARGE_BYTES * perSecond * 8) / 1e9;
  return [
    `Example: ${EXAMPLE_CLONES.toLocaleString("en-US")} clones of 141 MB an hour are ${perSecond.toFixed(1)} each second. To send them takes ${cores(plain.ours.median)} of a core`,
    `over HTTP, ${cores(tls.ours.median)} over TLS with \`server.accel\` and ${cores(tls.reference.median)} over TLS that a web server relays. \`git http-backend\` takes ${cores(direct)}.`,
    `The network carries ${network.toFixed(1)} Gbit/s: it is the limit before the CPU is.`,
  ].join("\n");
}

function rowOf(results: Results, result: string, pattern: RegExp): Row {
  return findRow(results, result, pattern, `write ${SIZING_PAGE}`);
}
