/**
 * `npm run spec:coverage [-- WORD]`: every rule of docs/rules with the tests that hold it, or those whose number or text contains the
 * word. Exit code 1 if a rule has no test, or a test names a rule that there is not.
 */
import { resolve } from "node:path";
import { readCoverage } from "./rules.ts";

const word = process.argv[2]?.toLowerCase() ?? "";
const { rules, unknown, double } = readCoverage(resolve(import.meta.dirname, "../.."));
for (const { id, text, tests } of rules) {
  if (!`${id} ${text}`.toLowerCase().includes(word)) continue;
  process.stdout.write(`${id.padEnd(12)}${text}\n`);
  for (const test of tests) process.stdout.write(`            ${test}\n`);
}
const bare = rules.filter(({ tests }) => tests.length === 0);
for (const { id, text } of bare) process.stdout.write(`NO TEST ${id} ${text}\n`);
for (const place of unknown) process.stdout.write(`NO SUCH RULE ${place}\n`);
for (const id of double) process.stdout.write(`TWICE ${id}\n`);
process.stdout.write(`${rules.length} rules, ${bare.length} without a test\n`);
process.exitCode = bare.length + unknown.length + double.length === 0 ? 0 : 1;
