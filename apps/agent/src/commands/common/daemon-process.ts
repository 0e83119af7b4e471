import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { writeAtomically } from "@devplat/base";
import { isProcess } from "@devplat/base/process-signal";
import { ensureFolder } from "../../agent-files/places.ts";
import { AgentError } from "../../errors.ts";
import type { Host } from "../../host.ts";
import { WriterLock } from "../../sync/lock.ts";

/** A command such as `agent sync` holds the lock for less time. In milliseconds. */
const COMMAND_WAIT_MS = 3000;

/** Makes the running daemon read its configuration again. Gives false if there is no daemon. */
export async function signalDaemon(host: Host): Promise<boolean> {
  if (!(await isDaemonRunning(host))) return false;
  const pid = await new DaemonPid(host.places.runtime).read();
  if (pid === undefined) return false;
  try {
    process.kill(pid, "SIGHUP");
    return true;
  } catch {
    return false;
  }
}

/**
 * Whether a daemon of this user runs, by its writer lock, which ends with its process. A process id alone proves nothing, as
 * numbers are used again.
 */
export async function isDaemonRunning(host: Host, waitMs = 0): Promise<boolean> {
  try {
    using lock = await WriterLock.acquire(host.places.state, waitMs);
    host.logger.debug({ lock: lock.path }, "the lock is free");
    return false;
  } catch (error) {
    if (error instanceof AgentError && error.code === "locked") return true;
    throw error;
  }
}

/**
 * The running daemon of this user, with its PID if it is known. A command that writes for a moment is waited for.
 *
 * @param expected PID of the daemon's service; no lock is tried while the daemon has it
 */
export async function runningDaemon(
  host: Host,
  expected: number | null,
): Promise<{ readonly pid: number | undefined } | undefined> {
  const file = new DaemonPid(host.places.runtime);
  const pid = await file.read();
  if (pid !== undefined && pid === expected) return { pid };
  if (!(await isDaemonRunning(host))) return undefined;
  if (pid !== undefined && isProcess(pid)) return { pid };
  if (!(await isDaemonRunning(host, COMMAND_WAIT_MS))) return undefined;
  // A daemon that was starting has written its PID in the meantime.
  const later = await file.read();
  return { pid: later !== undefined && isProcess(later) ? later : undefined };
}

/** File with the process id of the running daemon, for `agent reload`. It is valid only while the writer lock is held. */
export class DaemonPid {
  readonly #folder: string;

  /** @param runtime the runtime folder */
  constructor(runtime: string) {
    this.#folder = runtime;
  }

  async publish(): Promise<void> {
    await ensureFolder(this.#folder);
    await writeAtomically(this.#path(), `${process.pid}\n`);
  }

  async withdraw(): Promise<void> {
    if ((await this.read()) === process.pid) await rm(this.#path(), { force: true });
  }

  async read(): Promise<number | undefined> {
    const text = await readFile(this.#path(), "utf8").catch(() => "");
    return /^[1-9]\d{0,9}\n$/.test(text) ? Number(text) : undefined;
  }

  #path(): string {
    return join(this.#folder, "daemon.pid");
  }
}
