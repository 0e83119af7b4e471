/**
 * `npm test`: installs the peers that are missing, then types, lint and format, then every test file. The last line is
 * `N passed, N failed`. `npm test -- PART …` runs only the test files whose path contains a PART, no checks, and installs
 * nothing.
 */
import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { CHECKS, runCheck } from "./checks.ts";
import { groupFiles, testFiles } from "./files.ts";
import { runGroup } from "./group.ts";
import { missingPeers } from "./peers.ts";

const root = resolve(import.meta.dirname, "../..");
const SETUP = resolve(root, "tools/setup-peers.sh");
const OLDEST_NODE_MAJOR = 26;

process.exitCode = await main(process.argv.slice(2));

async function main(patterns: readonly string[]): Promise<number> {
  const refusal = unfit(patterns);
  if (refusal !== undefined) {
    process.stdout.write(`${refusal}\n`);
    return 1;
  }
  const broken: string[] = [];
  let passed = 0;
  let failed = 0;
  if (patterns.length === 0) {
    for (const name of Object.keys(CHECKS) as (keyof typeof CHECKS)[]) {
      const begun = performance.now();
      const clean = await runCheck(root, name);
      if (clean) passed++;
      else failed++;
      say(name, (performance.now() - begun) / 1000, clean ? "clean" : "NOT CLEAN");
    }
  }
  for (const group of groupFiles(testFiles(root, ".test.ts", patterns))) {
    const result = await runGroup(root, group, { concurrency: availableParallelism() });
    passed += result.passed;
    failed += result.failed;
    say(group.name, result.seconds, `${result.passed} passed, ${result.failed} failed`);
    if (result.broken !== undefined) broken.push(`${group.name}: ${result.broken}`);
  }
  // A group that broke is a failure, whatever its tests said before.
  failed += broken.length;
  for (const line of broken) process.stdout.write(`BROKEN ${line}\n`);
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  return failed === 0 && passed > 0 ? 0 : 1;
}

/** Installs what is missing. @returns why nothing can be run here, or undefined */
function unfit(patterns: readonly string[]): string | undefined {
  if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE_MAJOR) {
    return `The tests need Node ${OLDEST_NODE_MAJOR}: run them with \`npm test\``;
  }
  if (testFiles(root, ".test.ts", patterns).length === 0) {
    return `No test file's path contains ${patterns.map((pattern) => `"${pattern}"`).join(" or ")}`;
  }
  const isMissing = missingPeers().length > 0;
  // A few files rarely need them all.
  if (isMissing && patterns.length === 0) spawnSync("sh", [SETUP], { stdio: "inherit" });
  const missing = isMissing ? missingPeers() : [];
  if (missing.length === 0) return undefined;
  const names = missing.join(", ");
  if (patterns.length === 0) return `Missing for the tests: ${names}. Install them, then run npm test again.`;
  process.stderr.write(
    `Missing: ${names}. Tests that need them fail; \`npm run setup:peers\` installs them.\n`,
  );
  return undefined;
}

function say(name: string, seconds: number, found: string): void {
  process.stdout.write(`${name.padEnd(28)}${seconds.toFixed(1).padStart(6)} s  ${found}\n`);
}
