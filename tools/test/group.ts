import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Tally } from "./counter.ts";
import type { Group } from "./files.ts";

/** A group that takes longer hangs: no group is meant to take more than a minute or two. */
const GROUP_LIMIT_MS = 15 * 60 * 1000;

export interface GroupResult extends Tally {
  readonly seconds: number;
  /** Set when the group ended without a result of its own: a crash, a hang, no test at all. */
  readonly broken: string | undefined;
}

export interface RunGroupOptions {
  /** How many files of an isolated group run at once. */
  readonly concurrency: number;
  /** Whether nothing is printed. Default false. */
  readonly quiet?: boolean;
}

/** Runs one group with node:test in a process of its own; failures print in full, passes only as a count. */
export async function runGroup(root: string, group: Group, options: RunGroupOptions): Promise<GroupResult> {
  const output = options.quiet === true ? "ignore" : "inherit";
  const folder = mkdtempSync(join(tmpdir(), "devplat-tally-"));
  const tallyPath = join(folder, "tally.json");
  const begun = performance.now();
  try {
    const child = spawn(
      process.execPath,
      [
        "--disable-warning=ExperimentalWarning",
        "--test",
        ...(group.isolated ? [`--test-concurrency=${options.concurrency}`] : ["--test-isolation=none"]),
        `--test-reporter=${pathToFileURL(join(import.meta.dirname, "failures.ts")).href}`,
        "--test-reporter-destination=stdout",
        `--test-reporter=${pathToFileURL(join(import.meta.dirname, "counter.ts")).href}`,
        "--test-reporter-destination=stderr",
        ...group.files,
      ],
      { cwd: root, stdio: ["ignore", output, output], env: environment(tallyPath) },
    );
    const timer = setTimeout(() => child.kill("SIGKILL"), GROUP_LIMIT_MS);
    const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
    clearTimeout(timer);
    const tally = readTally(tallyPath);
    const seconds = (performance.now() - begun) / 1000;
    return { ...(tally ?? NOTHING), seconds, broken: whatBroke(tally, code, signal) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const NOTHING: Tally = { passed: 0, failed: 0, skipped: 0 };

function whatBroke(
  tally: Tally | undefined,
  code: number | null,
  signal: NodeJS.Signals | null,
): string | undefined {
  if (signal !== null) return `ended by ${signal}`;
  if (tally === undefined) return `ended with ${code} and without a result`;
  if (tally.skipped > 0) return `${tally.skipped} skipped or todo: no test may be`;
  if (tally.passed + tally.failed === 0) return "holds no test";
  if (code !== 0 && tally.failed === 0) return `ended with ${code} although no test failed`;
  return undefined;
}

function readTally(path: string): Tally | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Tally;
  } catch {
    return undefined;
  }
}

/** NODE_TEST_CONTEXT would make the child believe it is a test file of another run, and run nothing. */
function environment(tallyPath: string): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env, TEST_TALLY: tallyPath };
  delete env["NODE_TEST_CONTEXT"];
  delete env["NODE_OPTIONS"];
  return env;
}
