/**
 * `npm run bench [-- NAME …]`: every benchmark, or those named. `svc` names those of the table of targets for `svc`,
 * `index` only writes `bench/results/README.md` and the pages again. Each benchmark compares with its reference in
 * interleaved runs and writes `bench/results/NAME.{json,md,svg}`. `ROUNDS` (default 5) sets the runs of each kind.
 */
import { measuredCode } from "./lib/measured-code.ts";
import { BENCHMARKS } from "./lib/registry.ts";
import { verdict, writeReport } from "./lib/report.ts";
import { renderAll } from "./lib/results-index.ts";

const all = Object.keys(BENCHMARKS);
const asked = process.argv.length > 2 ? process.argv.slice(2) : all;
const names = asked.flatMap((name) =>
  name === "svc" ? all.filter((each) => BENCHMARKS[each]?.svc) : name === "index" ? [] : [name],
);
const rounds = Number(process.env["ROUNDS"] ?? 5);
for (const name of names) {
  const benchmark = BENCHMARKS[name];
  if (benchmark === undefined) {
    process.stderr.write(`No benchmark is called "${name}": svc, index, ${all.join(", ")}\n`);
    process.exitCode = 1;
    continue;
  }
  const code = measuredCode(benchmark.code);
  if (code.uncommitted)
    process.stderr.write(`${name}: measures uncommitted code. Do not commit the result.\n`);
  const start = performance.now();
  try {
    const report = await (await benchmark.load()).run(rounds);
    process.stdout.write(`${writeReport(report, code)}\n`);
    for (const row of report.rows.filter((each) => verdict(each) === "missed")) {
      const reason = row.reason === undefined ? " (no reason is recorded)" : "";
      process.stderr.write(`target missed: ${row.what}${reason}\n`);
    }
  } catch (error) {
    // The others are independent of this one.
    process.stderr.write(`${name} failed: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exitCode = 1;
  }
  process.stderr.write(`${name}: ${((performance.now() - start) / 1000).toFixed(0)} s\n`);
}
renderAll();
