/**
 * `npm run simulate [-- OPTIONS]`: simulates a fleet of `svc`. `--help` lists the options, and `docs/scale.md` explains the
 * model.
 */
import { readResults, renderAll } from "../lib/results-index.ts";
import { writeAnswers } from "./answers.ts";
import { HELP, readArguments, type SimulateArguments } from "./arguments.ts";
import { enoughInstances } from "./enough.ts";
import { readCosts } from "./model/read-costs.ts";
import { simulate } from "./model/run.ts";
import { sensitivityOf } from "./sensitivity.ts";
import { bottleneckText, enoughText, outcomeText, sensitivityText } from "./table.ts";

try {
  const options = readArguments(process.argv.slice(2));
  if (options.help) process.stdout.write(HELP);
  else if (options.write) {
    writeAnswers(readResults());
    renderAll();
  } else run(options);
} catch (error) {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}

function run({ scenario, untilEnough, sensitivity, json, p99Seconds }: SimulateArguments): void {
  const costs = readCosts(readResults());
  const enough = untilEnough ? enoughInstances(scenario, costs, p99Seconds) : undefined;
  const outcome = enough?.outcome ?? simulate(scenario, costs);
  const effects = sensitivity
    ? sensitivityOf({ ...scenario, instances: outcome.instances }, costs)
    : undefined;
  if (json) {
    const found = enough && { enough: enough.instances ?? null, reasons: enough.reasons };
    const document = {
      scenario,
      ...found,
      outcome,
      bottleneck: bottleneckText(outcome),
      sensitivity: effects,
    };
    process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
  } else {
    const parts = [
      ...(enough === undefined ? [] : [enoughText(enough)]),
      outcomeText(outcome),
      ...(effects === undefined ? [] : [sensitivityText(effects)]),
    ];
    process.stdout.write(`${parts.join("\n\n")}\n`);
  }
  if (enough !== undefined && enough.instances === undefined) process.exitCode = 1;
}
