import { spawn, type ChildProcess, type SpawnOptions } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { signalGroup } from "@devplat/base/process-signal";
import { TestkitError } from "./errors.ts";
import { gitEnvironment } from "./git-environment.ts";

/** Result of a command. `code` is the exit status, or 128 + the signal's number as in a shell. */
export interface Finished {
  readonly code: number;
  /** As UTF-8 text; {@link stdoutBytes} holds the same as bytes. */
  readonly stdout: string;
  readonly stderr: string;
  readonly stdoutBytes: Buffer;
}

export interface RunOptions {
  readonly cwd?: string;
  /** The whole environment of the command. Default: this process's. */
  readonly env?: NodeJS.ProcessEnv;
  /** Written to its standard input, which is then closed. Default: nothing. */
  readonly input?: string | Uint8Array;
  /** Milliseconds after which the command and its children are killed. Default 120 000. */
  readonly timeoutMs?: number;
}

/** Long enough for the slowest command of a test on a loaded machine; a hang still ends by itself. */
const DEFAULT_TIMEOUT_MS = 120_000;
/** How long a peer may take to end by itself after SIGTERM, on a loaded machine; a hang still ends. */
const STOP_GRACE_MS = 30_000;

/** Runs a command to its end. Never rejects because of its exit status; rejects when it cannot be started. */
export async function run(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Finished> {
  const child = spawnGroup(command, args, {
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    env: options.env ?? process.env,
    stdio: ["pipe", "pipe", "pipe"],
  });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout?.on("data", (chunk: Buffer) => out.push(chunk));
  child.stderr?.on("data", (chunk: Buffer) => err.push(chunk));
  // A command may end without reading its input: that is its own business, its exit status tells.
  child.stdin?.on("error", () => {});
  child.stdin?.end(options.input ?? "");
  const timer = setTimeout(() => signalGroup(child, "SIGKILL"), options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
  try {
    const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
    const stdoutBytes = Buffer.concat(out);
    return {
      code: exitCode(code, signal),
      stdout: stdoutBytes.toString("utf8"),
      stderr: Buffer.concat(err).toString("utf8"),
      stdoutBytes,
    };
  } finally {
    clearTimeout(timer);
  }
}

/** Runs `git` with {@link gitEnvironment} and gives its standard output without the last newline. Throws when it fails. */
export async function git(args: readonly string[], options: RunOptions = {}): Promise<string> {
  const result = await run("git", args, { env: gitEnvironment(), ...options });
  if (result.code !== 0) {
    throw new TestkitError(
      "command_failed",
      `git ${args.join(" ")} ended with ${result.code}: ${result.stderr.trim()}`,
    );
  }
  return result.stdout.replace(/\n$/, "");
}

/**
 * Starts a command as leader of its own process group, so that it and all its children can be ended together.
 * The group is killed when this process exits.
 */
export function spawnGroup(
  command: string,
  args: readonly string[],
  options: SpawnOptions = {},
): ChildProcess {
  const child = spawn(command, args, { ...options, detached: true });
  if (child.pid !== undefined) {
    running.add(child);
    child.once("exit", () => running.delete(child));
  }
  return child;
}

/** A shell's exit code for what Node reports of an ended child. */
export function exitCode(code: number | null, signal: NodeJS.Signals | null): number {
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}

/** Ends a command's group: SIGTERM, then SIGKILL after half a minute. Resolves when the leader is gone. */
export async function stopGroup(child: ChildProcess, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
  if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
    const gone = once(child, "exit");
    signalGroup(child, signal);
    const timer = setTimeout(() => signalGroup(child, "SIGKILL"), STOP_GRACE_MS);
    await gone;
    clearTimeout(timer);
  }
  // Children that ignored the signal also end.
  signalGroup(child, "SIGKILL");
}

/**
 * A command line under which a long-lived peer dies with the process that started it, even by SIGKILL (a test
 * runner that is killed runs no exit handler). Without util-linux's setpriv it is the command itself.
 */
export function dyingWithParent(command: string, args: readonly string[]): [string, string[]] {
  if (!existsSync(SETPRIV)) return [command, [...args]];
  return [SETPRIV, ["--pdeathsig", "TERM", "--", command, ...args]];
}

const SETPRIV = "/usr/bin/setpriv";

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) signalGroup(child, "SIGKILL");
});
