import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { barChart } from "./chart.ts";
import type { MeasuredCode } from "./measured-code.ts";
import type { Row } from "./row.ts";
import type { Summary } from "./statistics.ts";

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
  return writePage(stored);
}

/** Writes the page and the chart of a stored result, and gives the page. */
export function writePage(stored: StoredReport): string {
  const markdown = toMarkdown(stored);
  writeFileSync(join(RESULTS, `${stored.name}.md`), markdown);
  writeFileSync(join(RESULTS, `${stored.name}.svg`), barChart(stored.title, stored.rows));
  return markdown;
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

function toMarkdown(report: StoredReport): string {
  const missed = report.rows.filter((row) => verdict(row) === "missed");
  const lines = [
    `# ${report.title}`,
    "",
    report.method,
    "",
    `Machine: ${Object.values(report.machine).join(", ")}. Medians; the range of the runs in brackets.${codeText(report.code)}`,
    "",
    "| what | ours | reference | ratio | target | |",
    "|---|---|---|---|---|---|",
    ...report.rows.map((row) =>
      [
        "",
        row.what,
        figure(row.ours, row.unit),
        [
          `${figure(row.reference, row.unit)} ${row.referenceName}`,
          ...(row.others ?? []).map(({ name, value }) => `${figure(value, row.unit)} ${name}`),
        ].join("; "),
        ratioOf(row).toFixed(3),
        targetText(row),
        verdict(row),
        "",
      ]
        .join(" | ")
        .trim(),
    ),
    "",
    `![${report.title}](${report.name}.svg)`,
    "",
    ...(report.notes ?? []).map((note) => `- ${note}`),
    ...(missed.length === 0 ? [] : ["", "## Missed targets", ""]),
    ...missed.map((row) => `- ${row.what}: ${row.reason ?? "no reason is recorded."}`),
  ];
  return `${lines.join("\n").trimEnd()}\n`;
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

export function figure(summary: Summary, unit: string): string {
  return `${short(summary.median)} ${unit} (${short(summary.min)}–${short(summary.max)})`;
}

function short(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(2) : value.toFixed(4);
}
