/**
 * `npm run bench [-- NAME …]`: every benchmark, or those named. `--help` lists them. Each benchmark compares with its
 * reference in interleaved runs and writes `bench/results/NAME.{json,md,svg}`. `ROUNDS` (default 5) sets the runs of each
 * kind. See `bench/README.md`.
 */
import { availableParallelism, loadavg } from "node:os";
import { measuredCode } from "./lib/measured-code.ts";
import { reasonOf } from "./lib/reasons.ts";
import { BENCHMARKS } from "./lib/registry.ts";
import { verdict, writeReport } from "./lib/report.ts";
import { renderAll } from "./lib/results-index.ts";

/** Load of the last minute, for each core, above which figures are not those of a quiet machine. */
const MAX_IDLE_LOAD = 0.1;

const HELP = `Usage: npm run bench [-- [NAME ...] [--render] [--help]]

Measure, and write bench/results/. Without a name, all benchmarks run, which takes some hours.
  svc        the benchmarks of the table of targets for svc
  --render   write the pages again from the stored figures, without measuring
  ROUNDS=N   environment: runs of each kind, default 5

Benchmarks, with the time that they took on two cores:
${Object.entries(BENCHMARKS)
  .map(
    ([name, { measures, took, svc }]) => `  ${name.padEnd(22)}${measures} (${took}${svc ? "; in svc" : ""})`,
  )
  .join("\n")}
`;

const all = Object.keys(BENCHMARKS);
const args = process.argv.slice(2);
const isRender = args.includes("--render");
const named = args.filter((arg) => arg !== "--render" && arg !== "--help");
const chosen = args.length > 0 ? named : all;
const names = chosen.flatMap((name) =>
  name === "svc" ? all.filter((each) => BENCHMARKS[each]?.svc) : [name],
);
const unknown = names.find((name) => BENCHMARKS[name] === undefined);

if (args.includes("--help")) process.stdout.write(HELP);
else if (unknown !== undefined) {
  process.stderr.write(`No benchmark is called "${unknown}". Run npm run bench -- --help for the list.\n`);
  process.exitCode = 2;
} else {
  if (!isRender || names.length > 0) warnIfBusy();
  for (const name of names) await measure(name);
  renderAll();
}

function warnIfBusy(): void {
  const [load = 0] = loadavg();
  const cores = availableParallelism();
  if (load <= MAX_IDLE_LOAD * cores) return;
  process.stderr.write(
    `The machine is not idle: load average ${load.toFixed(2)} on ${cores} cores. Figures will be too high. Do not commit them.\n`,
  );
}

async function measure(name: string): Promise<void> {
  const benchmark = BENCHMARKS[name];
  if (benchmark === undefined) return;
  const rounds = Number(process.env["ROUNDS"] ?? 5);
  const code = measuredCode(benchmark.code);
  if (code.uncommitted)
    process.stderr.write(`${name}: measures uncommitted code. Do not commit the result.\n`);
  const start = performance.now();
  try {
    const report = await (await benchmark.load()).run(rounds);
    process.stdout.write(`${writeReport(report, code)}\n`);
    for (const row of report.rows.filter((each) => verdict(each) === "missed")) {
      const reason =
        reasonOf(name, row.what) === undefined ? " (no reason is recorded in bench/lib/reasons.ts)" : "";
      process.stderr.write(`target missed: ${row.what}${reason}\n`);
    }
  } catch (error) {
    // The others are independent of this one.
    process.stderr.write(`${name} failed: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exitCode = 1;
  }
  process.stderr.write(`${name}: ${((performance.now() - start) / 1000).toFixed(0)} s\n`);
}
