import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { barChart } from "./chart.ts";
import { figure, runsText } from "./figures.ts";
import type { MeasuredCode } from "./measured-code.ts";
import { reasonOf } from "./reasons.ts";
import type { Row } from "./row.ts";

export interface Report {
  readonly name: string;
  readonly title: string;
  /** How it was measured, in a few sentences. */
  readonly method: string;
  readonly rows: readonly Row[];
  /** Other figures worth keeping. */
  readonly notes?: readonly string[];
}

/** A result as it is stored. */
export interface StoredReport extends Report {
  readonly machine: Readonly<Record<string, string | number>>;
  /** ISO 8601. */
  readonly measured_at: string;
  /** Undefined in results from before November 24, 2026. */
  readonly code?: MeasuredCode;
}

export const RESULTS = join(import.meta.dirname, "../results");

export function ratioOf(row: Row): number {
  return row.ours.median / row.reference.median;
}

/** `met`, `missed`, or an empty text where there is no target. */
export function verdict(row: Row): "met" | "missed" | "" {
  if (row.target === undefined) return "";
  const ratio = ratioOf(row);
  const met = ratio <= (row.target.atMost ?? Infinity) && ratio >= (row.target.atLeast ?? -Infinity);
  return met ? "met" : "missed";
}

/** Writes `results/NAME.json`, `.md` and `.svg`, and gives the Markdown. */
export function writeReport(report: Report, code: MeasuredCode): string {
  mkdirSync(RESULTS, { recursive: true });
  const stored = { ...report, machine: machineFacts(), measured_at: new Date().toISOString(), code };
  writeFileSync(join(RESULTS, `${report.name}.json`), `${JSON.stringify(stored, null, 2)}\n`);
  const page = pageOf(stored);
  writeFileSync(join(RESULTS, `${report.name}.md`), page);
  writeFileSync(join(RESULTS, `${report.name}.svg`), barChart(stored.title, stored.rows));
  return page;
}

function machineFacts(): Record<string, string | number> {
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memory_gb: Math.round(totalmem() / 1e9),
    node: process.version,
    git: execFileSync("git", ["--version"], { encoding: "utf8" }).trim(),
  };
}

/** The page of a result. */
export function pageOf(report: StoredReport): string {
  const missed = missedOf(report);
  const lines = [
    `# ${report.title}`,
    "",
    report.method.replace(/\b1 rounds\b/, "1 round"),
    "",
    `Machine: ${machineText(report.machine)}. Measured on ${report.measured_at.slice(0, 10)}.${codeText(report.code)} Each value is the median of its runs. If the runs differed, the range is in brackets.`,
    "",
    "| what | ours | reference | runs | ratio | target | |",
    "|---|---|---|---|---|---|---|",
    ...report.rows.map(
      (row) =>
        `| ${[row.what, ...figuresOf(row), ratioOf(row).toFixed(3), targetText(row), verdict(row)].join(" | ")} |`,
    ),
    "",
    `![${report.title}](${report.name}.svg)`,
    "",
    ...(report.notes ?? []).map((note) => `- ${note}`),
    ...(missed.length === 0 ? [] : ["", "## Missed targets", "", ...missed]),
  ];
  return `${lines.join("\n").trimEnd()}\n`.replaceAll("\n\n\n", "\n\n");
}

/** Cells of a row: our figure, those of the references, and the number of runs. */
export function figuresOf(row: Row): [ours: string, references: string, runs: string] {
  const references = [
    `${figure(row.reference, row.unit)} ${row.referenceName}`,
    ...(row.others ?? []).map(({ name, value }) => `${figure(value, row.unit)} ${name}`),
  ];
  return [figure(row.ours, row.unit), references.join("; "), runsText(row.ours, row.reference)];
}

/** A list of the missed rows of a result with their reasons. Rows with the same reason share an entry. */
export function missedOf({ name, rows }: Report): string[] {
  const byReason = Map.groupBy(
    rows.filter((row) => verdict(row) === "missed"),
    ({ what }) => reasonOf(name, what) ?? "No reason is recorded.",
  );
  return [...byReason].map(([reason, missed]) => {
    const list = missed.map(
      (row) => `**${row.what}** (${ratioOf(row).toFixed(3)}, target ${targetText(row)})`,
    );
    return `- ${list.join("; ")}: ${reason}`;
  });
}

function machineText({ cpu, cores, memory_gb, node, git }: StoredReport["machine"]): string {
  return `${cpu}, ${cores} cores, ${memory_gb} GB of memory, Node ${String(node).replace(/^v/, "")}, ${String(git).replace("git version", "git")}`;
}

function codeText(code: MeasuredCode | undefined): string {
  if (code === undefined) return "";
  const state = code.uncommitted ? " with uncommitted changes" : "";
  return ` Code: ${code.folders.map((folder) => `\`${folder}\``).join(", ")} at ${code.commit.slice(0, 10)}${state}.`;
}

export function targetText(row: Row): string {
  const { atMost, atLeast } = row.target ?? {};
  if (atMost !== undefined) return `≤ ${Number(atMost.toPrecision(3))}`;
  if (atLeast !== undefined) return `≥ ${Number(atLeast.toPrecision(3))}`;
  return "";
}
