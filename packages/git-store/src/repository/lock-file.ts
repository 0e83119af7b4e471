import { randomBytes } from "node:crypto";
import { link, readFile, rename, stat, unlink, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { GitStoreError, hasCode } from "../errors.ts";
import { temporaryName } from "./leftovers.ts";
import { OWNER, ownerIsGone } from "./owner.ts";

/** Age of a lock file after which its holder counts as dead, ms. */
const STALE_MS = 60_000;
/** Interval in which the holder touches its file, ms. */
const TOUCH_MS = 10_000;
/** Interval between two tries while waiting, ms. */
const RETRY_MS = 50;

/** Options of {@link acquireLock}. */
export interface LockOptions {
  /** Maximum time to wait for another holder, ms. Default 0. */
  readonly waitMs?: number;
  /** Stops the wait, which then throws its reason. */
  readonly signal?: AbortSignal;
}

/** A held lock. Release it in `finally`, or hold it with `await using`. */
export interface Lock extends AsyncDisposable {
  release(): Promise<void>;
}

/**
 * Acquires a lock among all processes that share the folder: a file that exists while the lock is held and names its
 * owner. The lock of a process that has ended is broken immediately if the end can be seen from this machine, otherwise
 * a minute after the file was last touched.
 *
 * @throws {GitStoreError} `locked` when another holds it for longer than `waitMs`
 */
export async function acquireLock(path: string, options: LockOptions = {}): Promise<Lock> {
  const token = `${OWNER} ${randomBytes(8).toString("hex")}\n`;
  const deadline = performance.now() + (options.waitMs ?? 0);
  for (;;) {
    options.signal?.throwIfAborted();
    if (await tryCreate(path, token)) return hold(path, token);
    if (await breakIfStale(path)) continue;
    if (performance.now() >= deadline) {
      throw new GitStoreError("locked", `lock ${path}: another process holds it`, { path });
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS * (0.5 + Math.random())));
  }
}

/** Creates the file with its content in one step. An empty file of a killed process would block others for a minute. */
async function tryCreate(path: string, token: string): Promise<boolean> {
  const moved = join(dirname(path), temporaryName("lock"));
  try {
    // On a full disk this fails after the file was created. It is removed like any other.
    await writeFile(moved, token, { flag: "wx", mode: 0o600 });
    return (await tryLink(moved, path)) ?? (await createInPlace(path, token));
  } finally {
    await unlink(moved).catch(ignoreMissing);
  }
}

/** @returns undefined on a file system without hard links */
async function tryLink(moved: string, path: string): Promise<boolean | undefined> {
  try {
    await link(moved, path);
    return true;
  } catch (error) {
    return hasCode(error, "EEXIST") ? false : undefined;
  }
}

async function createInPlace(path: string, token: string): Promise<boolean> {
  try {
    await writeFile(path, token, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    // An empty lock would block all processes for a minute.
    await unlink(path).catch(() => undefined);
    throw error;
  }
}

function hold(path: string, token: string): Lock {
  const timer = setInterval(() => {
    const now = new Date();
    void utimes(path, now, now).catch(() => undefined);
  }, TOUCH_MS);
  timer.unref();
  let released = false;
  const release = async (): Promise<void> => {
    if (released) return;
    released = true;
    clearInterval(timer);
    // Broken by another process that took us for dead: then it is not ours to remove.
    if ((await contentOf(path)) === token) await unlink(path).catch(ignoreMissing);
  };
  return { release, [Symbol.asyncDispose]: release };
}

/** Breaks the lock of a dead process. @returns whether the lock no longer exists */
async function breakIfStale(path: string): Promise<boolean> {
  const content = await contentOf(path);
  if (content === undefined) return true;
  const age = await ageOf(path);
  if (age === undefined) return true;
  // The owner of an empty file is writing it, or died. Its age decides.
  const gone = content === "" ? undefined : ownerIsGone(content.split(" ")[0]!);
  if (gone !== true && age < STALE_MS) return false;
  // Rename it first. If several processes break the lock, only one succeeds, and it can check the renamed file.
  const moved = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    await rename(path, moved);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return true;
    throw error;
  }
  const taken = await contentOf(moved);
  if (taken !== content) {
    // Another process broke the old lock and created a new one in between. Restore that one.
    await rename(moved, path);
    return false;
  }
  await unlink(moved).catch(ignoreMissing);
  return true;
}

async function contentOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

async function ageOf(path: string): Promise<number | undefined> {
  try {
    return Date.now() - (await stat(path)).mtimeMs;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

function ignoreMissing(error: unknown): void {
  if (!hasCode(error, "ENOENT")) throw error;
}
