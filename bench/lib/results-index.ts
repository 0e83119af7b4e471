import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { barChart } from "./chart.ts";
import { BENCHMARKS } from "./registry.ts";
import {
  figuresOf,
  missedOf,
  pageOf,
  ratioOf,
  RESULTS,
  targetText,
  verdict,
  type StoredReport,
} from "./report.ts";
import { readAnswers } from "../simulate/answers.ts";
import { SCALE_PAGE, scaleText } from "../simulate/page.ts";
import { SIZING_PAGE, sizingOf } from "./sizing.ts";
import { SVC_TARGETS } from "./svc-targets.ts";
import { withWrittenPart } from "./written-part.ts";

/** Page about the benchmarks. Its list of them is written. */
const BENCH_PAGE = resolve(import.meta.dirname, "../README.md");

/** Every stored result, by name. */
export function readResults(): Map<string, StoredReport> {
  return new Map(
    globSync("*.json", { cwd: RESULTS }).map((file) => [
      basename(file, ".json"),
      JSON.parse(readFileSync(join(RESULTS, file), "utf8")) as StoredReport,
    ]),
  );
}

/** Every file that is made from the stored results, by path: pages, charts, lists, and the figures of the sizing page. */
export function renderedFiles(results: ReadonlyMap<string, StoredReport>): Map<string, string> {
  const files = new Map<string, string>();
  for (const result of results.values()) {
    files.set(join(RESULTS, `${result.name}.md`), pageOf(result));
    files.set(join(RESULTS, `${result.name}.svg`), barChart(result.title, result.rows));
  }
  files.set(join(RESULTS, "README.md"), indexOf(results));
  files.set(join(RESULTS, "missed.md"), missedTargets(results));
  const written = [
    [SIZING_PAGE, sizingOf(results)],
    [BENCH_PAGE, listOfBenchmarks()],
    [SCALE_PAGE, scaleText(results, readAnswers())],
  ] as const;
  for (const [page, text] of written)
    files.set(page, withWrittenPart(page, readFileSync(page, "utf8"), text));
  return files;
}

/** Writes these files, without measuring. */
export function renderAll(): void {
  for (const [path, text] of renderedFiles(readResults())) writeFileSync(path, text);
}

/** The page that leads from each target for `svc` to its figures, and from each benchmark to its result. */
function indexOf(results: ReadonlyMap<string, StoredReport>): string {
  const lines = [
    "# Results",
    "",
    "Written by `npm run bench` ([how to run it](../README.md)). The first table has each target for the speed of `svc`, with the",
    "rows that measure it. [Missed targets](missed.md) has the reason of each missed one: what was tried, and what is in the way.",
    "Results without a recorded commit are in the second table only: they do not tell which code they measured.",
    "[Sizing](../../docs/svc/sizing.md) has the figures that an operator needs.",
    "",
    "| Word | Meaning |",
    "|---|---|",
    "| express, large | repositories with a clone pack of 10 MB (real), and of 141 MB (generated) |",
    "| direct | the same request to `git http-backend`, without `svc` |",
    "| nginx | nginx sends the same bytes as a file |",
    "| raw fetch | one `fetch` of a full clone by curl, which discards the response |",
    "| framed | the response is stored in the form in which it is sent: pack, packet lengths and side-band |",
    "| unframed, second use | the store has a reference to the pack of the mirror. `svc` adds the frame while it sends |",
    "| first, repeated | no client has sent this request before; the same request again |",
    "| cold, warm | nothing is stored; the response is stored |",
    "| server CPU | CPU time of the whole `svc` process, or of the git or nginx processes |",
    "| runs | runs behind each median. Two numbers: ours, and those of the reference |",
    "",
    "Walls of cold clones are in two results. For the targets, those of [clone](clone.md) count: its service has worked before.",
    "Those of [fill](fill.md) are of a release that has just started.",
    "",
    "| target | aim | row | ours | reference | runs | ratio | limit | |",
    "|---|---|---|---|---|---|---|---|---|",
  ];
  for (const { what, target, rows } of SVC_TARGETS) {
    const found = rows.flatMap(([name, pattern]) =>
      (results.get(name)?.code === undefined ? [] : (results.get(name)?.rows ?? []))
        .filter((row) => pattern.test(row.what))
        .map((row) => ({ name, row })),
    );
    if (found.length === 0) lines.push(`| ${what} | ${target} | not measured yet | | | | | | |`);
    for (const [at, { name, row }] of found.entries()) {
      const head = at === 0 ? [what, target] : ["", ""];
      const cells = [...figuresOf(row), ratioOf(row).toFixed(3), targetText(row), verdict(row)];
      lines.push(`| ${[...head, `[${row.what}](${name}.md)`, ...cells].join(" | ")} |`);
    }
  }
  lines.push("", "| benchmark | measured | code |", "|---|---|---|");
  for (const name of Object.keys(BENCHMARKS)) {
    const result = results.get(name);
    const link =
      result === undefined || !existsSync(join(RESULTS, `${name}.md`)) ? name : `[${name}](${name}.md)`;
    const commit = result?.code?.commit.slice(0, 10) ?? "not recorded";
    lines.push(
      `| ${link} | ${result?.measured_at?.slice(0, 10) ?? "no"} | ${result === undefined ? "" : commit} |`,
    );
  }
  return `${lines.join("\n")}\n`;
}

function listOfBenchmarks(): string {
  const rows = Object.entries(BENCHMARKS).map(
    ([name, { measures, took, svc }]) => `| \`${name}\` | ${measures} | ${took} | ${svc ? "yes" : ""} |`,
  );
  return ["| Name | Measures | Took | in `svc` |", "|---|---|---|---|", ...rows].join("\n");
}

/** The page of all missed targets. */
function missedTargets(results: ReadonlyMap<string, StoredReport>): string {
  const lines = [
    "# Missed targets",
    "",
    "Written by `npm run bench` from the recorded results. Each entry has the rows that miss their target, the ratio to the",
    "reference of the row, and the reason: what was tried, and what is in the way. [The results](README.md) explain the words.",
  ];
  for (const name of Object.keys(BENCHMARKS)) {
    const result = results.get(name);
    if (result === undefined) continue;
    const missed = missedOf(result);
    if (missed.length === 0) continue;
    lines.push("", `## ${name}`, "", `${result.title}: [figures](${name}.md).`, "", ...missed);
  }
  return `${lines.join("\n")}\n`;
}
