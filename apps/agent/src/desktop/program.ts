import { spawn } from "node:child_process";
import { once } from "node:events";
import { systemCode } from "@devplat/base";
import { childEnvironment } from "../platform/child-environment.ts";

/** One action on the desktop is bounded by this, in milliseconds (spec/agent.md section 6: 8 s). */
const DESKTOP_TIMEOUT_MS = 8000;

/** A program and its arguments; no shell is between. */
export type Command = readonly [program: string, ...args: string[]];

/**
 * Result of an action on this host's desktop.
 * - `no_program`: nothing on this host can do it.
 * - `failed`: a program was there and did not do it.
 */
export type DesktopOutcome = "done" | "no_program" | "failed";

export interface ProgramOptions {
  /** Environment of the daemon. The program gets it without the token. */
  readonly environment: NodeJS.ProcessEnv;
  /** Standard input of the program. Default: empty. */
  readonly input?: string | Uint8Array;
  /**
   * A program that still runs after this time, in milliseconds, is left alone and counts as done: it has become what
   * it was to start. Default: it is ended when the time for all programs together is over, and has failed.
   */
  readonly settledAfterMs?: number;
  /** Time limit for all programs together, in milliseconds. Default DESKTOP_TIMEOUT_MS. */
  readonly timeoutMs?: number;
}

/** Tries the programs in order until one has done it. Their output is never read: it may quote what they were given. */
export async function firstThatWorks(
  commands: readonly Command[],
  options: ProgramOptions,
): Promise<DesktopOutcome> {
  const end = performance.now() + (options.timeoutMs ?? DESKTOP_TIMEOUT_MS);
  let outcome: DesktopOutcome = "no_program";
  for (const command of commands) {
    const left = end - performance.now();
    if (left <= 0) return "failed";
    const tried = await runProgram(command, options, left);
    if (tried === "done") return tried;
    // A program that is there and fails says more than one that is not there.
    if (tried === "failed") outcome = "failed";
  }
  return outcome;
}

async function runProgram(
  [program, ...args]: Command,
  { environment, input, settledAfterMs }: ProgramOptions,
  timeoutMs: number,
): Promise<DesktopOutcome> {
  const settles = settledAfterMs !== undefined;
  const child = spawn(program, args, {
    env: childEnvironment(environment),
    stdio: [input === undefined ? "ignore" : "pipe", "ignore", "ignore"],
    // A program that outlives the daemon must not end with the daemon's terminal.
    detached: settles,
  });
  // A program that ends before it has read everything breaks the pipe. Its exit code shows the result.
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(input);
  const { promise: time, resolve: timeIsUp } = Promise.withResolvers<"time">();
  const timer = setTimeout(() => timeIsUp("time"), settledAfterMs ?? timeoutMs);
  try {
    const ended = await Promise.race([once(child, "exit") as Promise<[number | null]>, time]);
    if (ended !== "time") return ended[0] === 0 ? "done" : "failed";
    if (settles) return "done";
    child.kill("SIGKILL");
    return "failed";
  } catch (error) {
    return systemCode(error) === "ENOENT" ? "no_program" : "failed";
  } finally {
    clearTimeout(timer);
    child.unref();
  }
}
