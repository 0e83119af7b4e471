import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { barChart } from "./chart.ts";
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

const FOLDER = join(import.meta.dirname, "../results");

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
export function writeReport(report: Report): string {
  mkdirSync(FOLDER, { recursive: true });
  const machine = machineFacts();
  const markdown = toMarkdown(report, machine);
  writeFileSync(
    join(FOLDER, `${report.name}.json`),
    `${JSON.stringify({ ...report, machine, measured_at: new Date().toISOString() }, null, 2)}\n`,
  );
  writeFileSync(join(FOLDER, `${report.name}.md`), markdown);
  writeFileSync(join(FOLDER, `${report.name}.svg`), barChart(report.title, report.rows));
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

function toMarkdown(report: Report, machine: Record<string, string | number>): string {
  const lines = [
    `# ${report.title}`,
    "",
    report.method,
    "",
    `Machine: ${Object.values(machine).join(", ")}. Medians; the range of the runs in brackets.`,
    "",
    "| what | ours | reference | ratio | target | |",
    "|---|---|---|---|---|---|",
    ...report.rows.map((row) =>
      [
        "",
        row.what,
        figure(row.ours, row.unit),
        `${figure(row.reference, row.unit)} ${row.referenceName}`,
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
  ];
  return `${lines.join("\n").trimEnd()}\n`;
}

function targetText(row: Row): string {
  if (row.target?.atMost !== undefined) return `≤ ${row.target.atMost}`;
  if (row.target?.atLeast !== undefined) return `≥ ${row.target.atLeast}`;
  return "";
}

function figure(summary: Summary, unit: string): string {
  return `${short(summary.median)} ${unit} (${short(summary.min)}–${short(summary.max)})`;
}

function short(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(2) : value.toFixed(4);
}
