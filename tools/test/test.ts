/**
 * `npm test`: installs the peers that are missing, then types, lint and format, then every test file. The last line is
 * `N passed, N failed`. `npm test -- PART …` runs only the test files whose path contains a PART, no checks, and installs
 * nothing. `npm run test:quick` (`--quick`) is for before a commit: the checks and the tests that need no peer and are not
 * `*.long.test.ts`.
 */
import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { CHECKS, runCheck } from "./checks.ts";
import { groupFiles, quickFiles, testFiles, type Group } from "./files.ts";
import { runGroup, type GroupResult } from "./group.ts";
import { missingPeers } from "./peers.ts";

const root = resolve(import.meta.dirname, "../..");
const SETUP = resolve(root, "tools/setup-peers.sh");
const OLDEST_NODE_MAJOR = 26;
const CORES = availableParallelism();
/** Files against peers wait half of their time, for intervals and programs: one more than cores keeps those busy. */
const CONCURRENT_ISOLATED_FILES = CORES + 1;
/** If more files than this fail in one group, they are not run a second time. */
const MAX_UNSTABLE_FILES = 3;

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const isQuick = args.includes("--quick");
  const patterns = args.filter((arg) => arg !== "--quick");
  const refusal = unfit(patterns, isQuick);
  if (refusal !== undefined) {
    process.stdout.write(`${refusal}\n`);
    return 1;
  }
  const sum = { passed: 0, failed: 0 };
  const broken: string[] = [];
  if (patterns.length === 0) {
    for (const name of Object.keys(CHECKS) as (keyof typeof CHECKS)[]) {
      const begun = performance.now();
      const isClean = await runCheck(root, name);
      sum[isClean ? "passed" : "failed"]++;
      say(name, (performance.now() - begun) / 1000, isClean ? "clean" : "NOT CLEAN");
    }
  }
  const test = async (group: Group): Promise<void> => {
    const { passed, failed, seconds, broken: reason } = await runTwice(group);
    sum.passed += passed;
    sum.failed += failed;
    say(group.name, seconds, `${passed} passed, ${failed} failed`);
    if (reason !== undefined) broken.push(`${group.name}: ${reason}`);
  };
  const found = testFiles(root, ".test.ts", patterns);
  const groups = groupFiles(isQuick ? quickFiles(root, found) : found);
  // A group of one process uses one core. Large groups first: one that begins last runs alone at the end.
  const waiting = groups
    .filter(({ isolated }) => !isolated)
    .toSorted((a, b) => b.files.length - a.files.length);
  const lane = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await test(next);
  };
  await Promise.all(Array.from({ length: CORES }, lane));
  for (const group of groups.filter(({ isolated }) => isolated)) await test(group);
  // A group that broke is a failure, even if its tests have passed.
  sum.failed += broken.length;
  for (const line of broken) process.stdout.write(`BROKEN ${line}\n`);
  process.stdout.write(`${sum.passed} passed, ${sum.failed} failed\n`);
  return sum.failed === 0 && sum.passed > 0 ? 0 : 1;
}

/**
 * Runs a group. With `CI` set, a few files that failed run a second time by themselves. A file that passes then is printed as
 * unstable: it shows a race, but does not fail the run.
 */
async function runTwice(group: Group): Promise<GroupResult> {
  const first = await runGroup(root, group, { concurrency: CONCURRENT_ISOLATED_FILES });
  const { failedFiles: files, broken } = first;
  const isFew = files.length > 0 && files.length <= MAX_UNSTABLE_FILES;
  if (process.env["CI"] === undefined || broken !== undefined || !isFew) return first;
  const again = await runGroup(root, { ...group, files }, { concurrency: 1 });
  if (again.failed > 0 || again.broken !== undefined) return first;
  for (const file of files) process.stdout.write(`UNSTABLE ${file}: failed, and passed the second time\n`);
  return { ...first, passed: first.passed + first.failed, failed: 0 };
}

/** Installs missing programs. @returns the reason why no test can run here, or undefined */
function unfit(patterns: readonly string[], isQuick: boolean): string | undefined {
  if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE_MAJOR) {
    return `The tests need Node ${OLDEST_NODE_MAJOR}: run them with \`npm test\``;
  }
  if (testFiles(root, ".test.ts", patterns).length === 0) {
    return `No test file's path contains ${patterns.map((pattern) => `"${pattern}"`).join(" or ")}`;
  }
  if (isQuick) return undefined;
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
