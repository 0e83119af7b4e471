/**
 * `npm test`: installs the peers that are missing, then types, lint and format, then every test file. The last line is
 * `N passed, N failed`. `npm test -- PART …` runs only the test files whose path contains a PART, no checks, and installs
 * nothing. `npm run test:quick` (`--quick`) is for before a commit: the checks and the tests that need no peer and are not
 * `*.long.test.ts`.
 */
import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { relative, resolve } from "node:path";
import { buildTestRelease } from "./agent-release.ts";
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
const MAX_UNSTABLE_FILES = 6;
/** Files named at the end of a whole run as those that took longest. */
const SLOWEST_FILES = 15;

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
  const seconds: [string, number][] = [];
  const repeated: (Group & { readonly failed: number })[] = [];
  const check = (name: keyof typeof CHECKS) => async (): Promise<void> => {
    const begun = performance.now();
    const isClean = await runCheck(root, name);
    sum[isClean ? "passed" : "failed"]++;
    say(name, (performance.now() - begun) / 1000, isClean ? "clean" : "NOT CLEAN");
  };
  const test = (group: Group) => async (): Promise<void> => {
    const result = await runGroup(root, group, { concurrency: CONCURRENT_ISOLATED_FILES });
    sum.passed += result.passed;
    sum.failed += result.failed;
    seconds.push(...Object.entries(result.fileSeconds));
    say(group.name, result.seconds, `${result.passed} passed, ${result.failed} failed`);
    if (result.broken !== undefined) broken.push(`${group.name}: ${result.broken}`);
    else if (isWorthRepeating(result))
      repeated.push({ ...group, files: result.failedFiles, failed: result.failed });
  };
  const found = testFiles(root, ".test.ts", patterns);
  const groups = groupFiles(isQuick ? quickFiles(root, found) : found);
  // Large groups first: one that begins last runs alone at the end.
  const together = groups
    .filter(({ isolated }) => !isolated)
    .toSorted((a, b) => b.files.length - a.files.length);
  const checks = patterns.length === 0 ? (Object.keys(CHECKS) as (keyof typeof CHECKS)[]) : [];
  const waiting = [...checks.map(check), ...together.map(test)];
  // A group of one process uses one core. All of them run next to the isolated one, which is the longest.
  const lane = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await next();
  };
  const release = await buildTestRelease();
  process.env["TEST_AGENT_LAUNCHER"] = release.launcher;
  const isolated = groups.filter((group) => group.isolated).map((group) => test(group)());
  await Promise.all([...isolated, ...Array.from({ length: CORES }, lane)]);
  for (const group of repeated) {
    const stillFailed = await failuresAlone(group);
    sum.passed += group.failed - stillFailed;
    sum.failed += stillFailed - group.failed;
  }
  await release.remove();
  if (patterns.length === 0) saySlowest(seconds);
  // A group that broke is a failure, also if no test of it failed.
  sum.failed += broken.length;
  for (const line of broken) process.stdout.write(`BROKEN ${line}\n`);
  process.stdout.write(`${sum.passed} passed, ${sum.failed} failed\n`);
  return sum.failed === 0 && sum.passed > 0 ? 0 : 1;
}

/** Whether the files that failed run a second time: with `CI` set, and if they are few. */
function isWorthRepeating({ failedFiles }: GroupResult): boolean {
  return (
    process.env["CI"] !== undefined && failedFiles.length > 0 && failedFiles.length <= MAX_UNSTABLE_FILES
  );
}

/**
 * Runs files that failed a second time, with nothing else next to them. Those that pass then are printed as unstable: that shows
 * a race, but does not fail the run.
 *
 * @returns the number of tests that failed again, or of those that failed first if the second run has no result
 */
async function failuresAlone(group: Group & { readonly failed: number }): Promise<number> {
  const again = await runGroup(root, group, { concurrency: 1 });
  if (again.broken !== undefined) return group.failed;
  for (const file of group.files) {
    if (again.failedFiles.includes(file)) continue;
    process.stdout.write(`UNSTABLE ${file}: failed, and passed the second time\n`);
  }
  return Math.min(again.failed, group.failed);
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

/** Prints the files that took longest. Other files ran next to them, so it is more than what they take alone. */
function saySlowest(seconds: readonly (readonly [string, number])[]): void {
  for (const [file, taken] of seconds.toSorted(([, a], [, b]) => b - a).slice(0, SLOWEST_FILES)) {
    process.stdout.write(`slow: ${taken.toFixed(0).padStart(4)} s  ${relative(root, file)}\n`);
  }
}

function say(name: string, seconds: number, found: string): void {
  process.stdout.write(`${name.padEnd(28)}${seconds.toFixed(1).padStart(6)} s  ${found}\n`);
}
