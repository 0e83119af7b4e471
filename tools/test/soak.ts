/** `npm run test:soak`: the long loops, `*.soak.ts`, one after the other. TEST_BUDGET_SECONDS bounds them. */
import { resolve } from "node:path";
import { testFiles } from "./files.ts";
import { runGroup } from "./group.ts";

const root = resolve(import.meta.dirname, "../..");
const SOAK_LIMIT_MS = 90 * 60 * 1000;
const files = testFiles(root, ".soak.ts", process.argv.slice(2));
if (files.length === 0) {
  process.stdout.write("no soak tests yet\n");
} else {
  const result = await runGroup(
    root,
    { name: "soak", files, isolated: true },
    // One at a time: a soak measures, and must not measure its neighbour. An hour each is what some are meant to take.
    { concurrency: 1, limitMs: files.length * SOAK_LIMIT_MS, testLimitMs: SOAK_LIMIT_MS },
  );
  if (result.broken !== undefined) process.stdout.write(`BROKEN soak: ${result.broken}\n`);
  const failed = result.failed + (result.broken === undefined ? 0 : 1);
  process.stdout.write(`${result.passed} passed, ${failed} failed\n`);
  process.exitCode = failed === 0 ? 0 : 1;
}
