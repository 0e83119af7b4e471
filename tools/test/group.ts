import { spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, mkdtempSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Tally } from "./counter.ts";
import type { Group } from "./files.ts";
import type { FileSeconds } from "./file-seconds.ts";

/**
 * A group that takes longer hangs: in one process none takes more than five minutes alone, and 25 were seen next to the isolated group,
 * which takes 40 on two cores.
 */
const LIMIT_MS = { together: 60 * 60 * 1000, isolated: 65 * 60 * 1000 } as const;
/**
 * A test or suite that sets no limit of its own fails after this, so that a hang has a name. The slowest takes a fifth
 * of it; suites with peers take longest.
 */
const TEST_LIMIT_MS = { together: 4 * 60 * 1000, isolated: 12 * 60 * 1000 } as const;

export interface GroupResult extends Tally {
  readonly seconds: number;
  /** Seconds of each file whose tests ended, also of a group that hung. */
  readonly fileSeconds: FileSeconds;
  /** Set when the group ended without a result of its own: a crash, a hang, no test at all. */
  readonly broken: string | undefined;
}

export interface RunGroupOptions {
  /** Number of files of an isolated group that run concurrently. */
  readonly concurrency: number;
  /** Whether nothing is printed. Default false. */
  readonly quiet?: boolean;
  /** Milliseconds after which the group hangs. Default: 60 minutes in one process, 65 with a process for each file. */
  readonly limitMs?: number;
  /** Milliseconds after which a test or suite fails that sets no limit of its own. Default: 4 minutes in one process, else 12. */
  readonly testLimitMs?: number;
}

/** Runs one group with node:test in a process of its own; failures print in full, passes only as a count. */
export async function runGroup(root: string, group: Group, options: RunGroupOptions): Promise<GroupResult> {
  const output = options.quiet === true ? "ignore" : "inherit";
  const folder = mkdtempSync(join(tmpdir(), "devplat-tally-"));
  const paths = {
    tally: join(folder, "tally.json"),
    running: join(folder, "running.txt"),
    seconds: join(folder, "seconds.json"),
  };
  const begun = performance.now();
  const way = group.isolated ? "isolated" : "together";
  try {
    const child = spawn(
      process.execPath,
      [
        "--disable-warning=ExperimentalWarning",
        // More reporters than node:test expects.
        "--disable-warning=MaxListenersExceededWarning",
        "--test",
        `--test-timeout=${options.testLimitMs ?? TEST_LIMIT_MS[way]}`,
        // Ends a file when its tests have ended: work that a failed test left would keep the run for ever.
        ...(group.isolated
          ? [`--test-concurrency=${options.concurrency}`, "--test-force-exit"]
          : ["--test-isolation=none"]),
        `--test-reporter=${pathToFileURL(join(import.meta.dirname, "failures.ts")).href}`,
        "--test-reporter-destination=stdout",
        `--test-reporter=${pathToFileURL(join(import.meta.dirname, "counter.ts")).href}`,
        "--test-reporter-destination=stderr",
        `--test-reporter=${pathToFileURL(join(import.meta.dirname, "running.ts")).href}`,
        "--test-reporter-destination=stderr",
        `--test-reporter=${pathToFileURL(join(import.meta.dirname, "file-seconds.ts")).href}`,
        "--test-reporter-destination=stderr",
        ...group.files,
      ],
      { cwd: root, stdio: ["ignore", output, output], env: environment(paths) },
    );
    const limit = options.limitMs ?? LIMIT_MS[way];
    let hung = false;
    const timer = setTimeout(() => {
      hung = true;
      child.kill("SIGKILL");
    }, limit);
    const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
    clearTimeout(timer);
    const tally = readJson(paths.tally) as Tally | undefined;
    const fileSeconds = (readJson(paths.seconds) as FileSeconds | undefined) ?? {};
    const seconds = (performance.now() - begun) / 1000;
    const broken = hung ? whatHung(limit, paths.running) : whatBroke(tally, code, signal);
    return { ...(tally ?? NOTHING), seconds, fileSeconds, broken };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const NOTHING: Tally = { passed: 0, failed: 0, skipped: 0, failedFiles: [] };

/** Names the tests that a group had started but not finished when it was ended at its limit. */
function whatHung(limitMs: number, runningPath: string): string {
  let running = "";
  try {
    running = readFileSync(runningPath, "utf8");
  } catch {
    // It hung before its first test.
  }
  return `not done after ${limitMs / 1000} s; begun and not ended:\n${running}`;
}

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

/** Value that a reporter wrote. Undefined: the group ended before it did. */
function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}

/** Where temporary files lie in memory: a test that waits for a disk waits for nothing that it asks about. */
const MEMORY_FOLDER = "/dev/shm";
/** Bytes that have to be free there: an interop run was seen to take a tenth of it. */
const MEMORY_NEEDED = 4 * 1024 ** 3;

/** The folder for temporary files: the user's choice, else one in memory, else the system's. */
function temporaryFolder(): string {
  if (process.env["TMPDIR"] !== undefined) return process.env["TMPDIR"];
  try {
    accessSync(MEMORY_FOLDER, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY_FOLDER);
    return bavail * bsize > MEMORY_NEEDED ? MEMORY_FOLDER : tmpdir();
  } catch {
    return tmpdir();
  }
}

/**
 * NODE_TEST_CONTEXT would make the child believe it is a test file of another run, and run nothing. The user's options for
 * Node are not those of the tests; TEST_NODE_OPTIONS are.
 */
function environment(paths: { tally: string; running: string; seconds: string }): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    TMPDIR: temporaryFolder(),
    TEST_TALLY: paths.tally,
    TEST_RUNNING: paths.running,
    TEST_SECONDS: paths.seconds,
  };
  delete env["NODE_TEST_CONTEXT"];
  delete env["NODE_OPTIONS"];
  const options = env["TEST_NODE_OPTIONS"];
  if (options !== undefined) env["NODE_OPTIONS"] = options;
  return env;
}
