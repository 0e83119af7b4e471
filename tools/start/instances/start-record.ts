import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { ifExists, pollUntil, writeAtomically } from "@devplat/base";
import { isStillRunning, readProcess } from "@devplat/base/process-record";
import { signalProcess } from "@devplat/base/process-signal";

/** Time for a keeper to end what a killed start left behind, in milliseconds. */
const LOCK_WAIT_MS = 15_000;
/** SQLITE_BUSY: another connection holds the lock. */
const SQLITE_BUSY = 5;
/** Time for a process to end by itself, in milliseconds. All data is temporary, so nothing is lost after it. */
const END_GRACE_MS = 5000;
const POLL_MS = 50;
/** Folder in the data folder with one file for each process, which holds its id. */
const PIDS = "pids";

/** A process with its start, so that no other process with the same id is taken for it. */
interface Started {
  readonly pid: number;
  readonly startTime: string;
}

/** A process of a start, and the signal that ends it. */
export interface Child {
  readonly name: string;
  readonly pid: number;
  readonly signal: NodeJS.Signals;
}

/** Content of `start.json`, which exists while a start uses the data folder, and after one that was killed. */
interface StartRecord {
  readonly owner: Started;
  /** Folder with all temporary data. */
  readonly temporary: string;
  readonly children: readonly (Child & Started)[];
}

/** Folder of the process ids in a data folder. */
export const pidsFolder = (data: string): string => join(data, PIDS);

/**
 * The right to use a data folder: an open exclusive SQLite transaction, which the operating system ends with the process.
 * The processes are recorded, so that they can be ended after this one was killed.
 */
export class StartClaim implements AsyncDisposable {
  readonly #data: string;
  readonly #lock: DatabaseSync;
  readonly #owner: Started;
  readonly #temporary: string;

  private constructor(data: string, lock: DatabaseSync, owner: Started, temporary: string) {
    this.#data = data;
    this.#lock = lock;
    this.#owner = owner;
    this.#temporary = temporary;
  }

  /**
   * Ends processes of an earlier start that was killed.
   *
   * @param temporary folder that is removed if this process is killed
   * @throws Error that names the process that uses the folder
   */
  static async acquire(data: string, temporary: string): Promise<StartClaim> {
    await refuseIfUsed(data);
    const lock = openLock(data);
    if (lock === undefined) {
      await refuseIfUsed(data);
      throw new Error(`Cannot use ${data}: another start is just using it. Try again in a moment.`);
    }
    try {
      await endLeftovers(data);
      const owner = await readProcess(process.pid);
      if (owner === undefined) throw new Error("Cannot read /proc: the several instances need Linux");
      const { pid, startTime } = owner;
      const claim = new StartClaim(data, lock, { pid, startTime }, temporary);
      await claim.record([]);
      return claim;
    } catch (error) {
      lock.close();
      throw error;
    }
  }

  /** Records the processes that run now, in place of those before. */
  async record(children: readonly Child[]): Promise<void> {
    const found: (Child & Started)[] = [];
    for (const { name, pid, signal } of children) {
      const startTime = (await readProcess(pid))?.startTime;
      if (startTime !== undefined) found.push({ name, pid, signal, startTime });
    }
    await mkdir(pidsFolder(this.#data), { recursive: true, mode: 0o700 });
    for (const { name, pid } of found) await writeFile(join(pidsFolder(this.#data), name), `${pid}\n`);
    const record: StartRecord = { owner: this.#owner, temporary: this.#temporary, children: found };
    await writeAtomically(recordFile(this.#data), `${JSON.stringify(record)}\n`, { mode: 0o600 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await forget(this.#data);
    this.#lock.close();
  }
}

/** Ends all that a start left behind, once that has ended without doing so itself. */
export async function cleanUpAfter(data: string, owner: number): Promise<void> {
  if ((await readRecord(data))?.owner.pid !== owner) return;
  const lock = openLock(data);
  if (lock === undefined) return;
  try {
    // The next start may have ended them in the meantime.
    if ((await readRecord(data))?.owner.pid === owner) await endLeftovers(data);
  } finally {
    lock.close();
  }
}

async function refuseIfUsed(data: string): Promise<void> {
  const record = await readRecord(data);
  if (record === undefined || !(await isStillRunning(record.owner))) return;
  const { pid } = record.owner;
  throw new Error(
    `Cannot use ${data}: process ${pid} already runs several instances there. Stop it with Ctrl-C or kill ${pid}, or set START_DATA_DIR to another folder.`,
  );
}

/** @returns undefined if another process holds the lock */
function openLock(data: string): DatabaseSync | undefined {
  const database = new DatabaseSync(join(data, "lock.db"), { timeout: LOCK_WAIT_MS });
  try {
    database.exec("BEGIN EXCLUSIVE");
    return database;
  } catch (error) {
    database.close();
    if (error instanceof Error && "errcode" in error && error.errcode === SQLITE_BUSY) return undefined;
    throw error;
  }
}

async function endLeftovers(data: string): Promise<void> {
  const record = await readRecord(data);
  if (record === undefined) return;
  await Promise.all(record.children.map(endProcess));
  await rm(record.temporary, { recursive: true, force: true, maxRetries: 5, retryDelay: POLL_MS });
  await forget(data);
}

async function endProcess(child: Child & Started): Promise<void> {
  if (!(await isStillRunning(child))) return;
  signalProcess(child.pid, child.signal);
  // A stopped process ends only after it continues.
  signalProcess(child.pid, "SIGCONT");
  const isRunning = await pollUntil(
    async () => isStillRunning(child),
    (seen) => !seen,
    { limitMs: END_GRACE_MS, intervalMs: POLL_MS },
  );
  // Each of them leads a process group.
  if (isRunning) signalProcess(-child.pid, "SIGKILL");
}

async function readRecord(data: string): Promise<StartRecord | undefined> {
  const text = await ifExists(readFile(recordFile(data), "utf8"));
  return text === undefined ? undefined : (JSON.parse(text) as StartRecord);
}

async function forget(data: string): Promise<void> {
  await rm(pidsFolder(data), { recursive: true, force: true });
  await rm(join(data, "env"), { force: true });
  await rm(recordFile(data), { force: true });
}

function recordFile(data: string): string {
  return join(data, "start.json");
}
