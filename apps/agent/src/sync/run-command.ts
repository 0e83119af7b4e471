import type { Clock } from "@devplat/base";
import { signalGroup } from "@devplat/base/process-signal";
import { spawn } from "node:child_process";
import type { RunRecord } from "./state.ts";
import { childEnvironment } from "../platform/child-environment.ts";

/** Time between asking a command to end and killing it, in milliseconds. */
const KILL_AFTER_MS = 2000;
/** Time for which output is still counted after the command itself has ended, in milliseconds. */
const DRAIN_MS = 100;

export interface RunRequest {
  readonly command: readonly string[];
  readonly timeoutMs: number;
}

/**
 * Runs a rule's command without a shell, in a process group of its own that ends with the time-out. Its output is
 * counted and thrown away: a reload command may well print what it has just read.
 */
export async function runCommand(request: RunRequest, clock: Clock, signal: AbortSignal): Promise<RunRecord> {
  const [program = "", ...args] = request.command;
  const started = clock.monotonic();
  const record = { at: new Date(clock.now()).toISOString(), stdout_bytes: 0, stderr_bytes: 0 };
  const outcome = await new Promise<{ exitCode: number | null; timedOut: boolean }>((resolve) => {
    const child = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: childEnvironment(process.env),
      detached: process.platform !== "win32",
    });
    let timedOut = false;
    let killer: NodeJS.Timeout | undefined;
    let drain: NodeJS.Timeout | undefined;
    const stop = (): void => {
      signalGroup(child, "SIGTERM");
      killer = setTimeout(() => {
        signalGroup(child, "SIGKILL");
        // A grandchild in a session of its own may still hold the pipes open.
        child.stdout.destroy();
        child.stderr.destroy();
      }, KILL_AFTER_MS);
    };
    const timer = setTimeout(() => {
      timedOut = true;
      stop();
    }, request.timeoutMs);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    child.stdout.on("data", (chunk: Buffer) => (record.stdout_bytes += chunk.length));
    child.stderr.on("data", (chunk: Buffer) => (record.stderr_bytes += chunk.length));
    const finish = (exitCode: number | null): void => {
      clearTimeout(timer);
      clearTimeout(killer);
      clearTimeout(drain);
      signal.removeEventListener("abort", stop);
      resolve({ exitCode, timedOut });
    };
    child.on("error", () => finish(null));
    child.on("close", (code) => finish(code));
    // A server that the command started in the background may never close the pipes.
    child.on("exit", (code) => {
      drain = setTimeout(() => {
        child.stdout.destroy();
        child.stderr.destroy();
        finish(code);
      }, DRAIN_MS);
    });
  });
  return {
    ...record,
    exit_code: outcome.exitCode,
    timed_out: outcome.timedOut,
    duration_ms: Math.round(clock.monotonic() - started),
  };
}
