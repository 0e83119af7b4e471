import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { BENCHMARKS } from "./registry.ts";
import { figure, ratioOf, RESULTS, targetText, verdict, writePage, type StoredReport } from "./report.ts";
import { SVC_TARGETS } from "./svc-targets.ts";

/** Every stored result, by name. */
export function readResults(): Map<string, StoredReport> {
  return new Map(
    globSync("*.json", { cwd: RESULTS }).map((file) => [
      basename(file, ".json"),
      JSON.parse(readFileSync(join(RESULTS, file), "utf8")) as StoredReport,
    ]),
  );
}

/** Writes the pages of the results and `bench/results/README.md` from the stored figures, without measuring. */
export function renderAll(): void {
  const results = readResults();
  for (const result of results.values()) if (result.code !== undefined) writePage(result);
  writeFileSync(join(RESULTS, "README.md"), indexOf(results));
}

/** The page that leads from each target for `svc` to its figures, and from each benchmark to its result. */
export function indexOf(results: ReadonlyMap<string, StoredReport>): string {
  const lines = [
    "# Results",
    "",
    "Written by `npm run bench`. The first table has each target for the speed of `svc`, with the rows that measure it. Older results",
    "are in the second table only: they do not tell which code they measured.",
    "A page tells for each missed target which attempts were made and what is in the way.",
    "",
    "express is a repository with a clone pack of 10 MB, large one with 141 MB. Framed: a response that is stored as it is sent.",
    "",
    "| target | aim | row | ours | reference | ratio | limit | |",
    "|---|---|---|---|---|---|---|---|",
  ];
  for (const { what, target, rows } of SVC_TARGETS) {
    const found = rows.flatMap(([name, pattern]) =>
      (results.get(name)?.code === undefined ? [] : (results.get(name)?.rows ?? []))
        .filter((row) => pattern.test(row.what))
        .map((row) => ({ name, row })),
    );
    if (found.length === 0) lines.push(`| ${what} | ${target} | not measured yet | | | | | |`);
    for (const [at, { name, row }] of found.entries()) {
      const head = at === 0 ? `${what} | ${target}` : " | ";
      lines.push(
        `| ${head} | [${row.what}](${name}.md) | ${figure(row.ours, row.unit)} | ${figure(row.reference, row.unit)} ${row.referenceName} | ${ratioOf(row).toFixed(3)} | ${targetText(row)} | ${verdict(row)} |`,
      );
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
