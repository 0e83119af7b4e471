import { randomBytes } from "node:crypto";
import { link, readFile, rename, stat, unlink, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { GitStoreError } from "../errors.ts";
import { temporaryName } from "./leftovers.ts";
import { OWNER, ownerIsGone } from "./owner.ts";

/** A lock whose file has not been touched for this long is taken for dead, ms. */
const STALE_MS = 60_000;
/** How often the holder touches its file, ms. */
const TOUCH_MS = 10_000;
/** Between two tries while waiting, ms. */
const RETRY_MS = 50;

/** Options of {@link acquireLock}. */
export interface LockOptions {
  /** How long to wait for another holder, ms. Default 0. */
  readonly waitMs?: number;
  /** Stops waiting. */
  readonly signal?: AbortSignal;
}

/** A held lock. Release it in `finally`, or hold it with `await using`. */
export interface Lock extends AsyncDisposable {
  release(): Promise<void>;
}

/**
 * Takes a lock that all processes sharing the folder respect: a file that exists while the lock is held and names its
 * owner. The lock of a process that has ended is broken at once where that can be seen, otherwise after a minute
 * without a sign of life.
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

/** Makes the file together with its content: an empty one, of a process that was killed, would block all for a minute. */
async function tryCreate(path: string, token: string): Promise<boolean> {
  const aside = join(dirname(path), temporaryName("lock"));
  try {
    // On a full disk this fails when the file is already there: it is removed like any other.
    await writeFile(aside, token, { flag: "wx", mode: 0o600 });
    return (await tryLink(aside, path)) ?? (await createInPlace(path, token));
  } finally {
    await unlink(aside).catch(ignoreMissing);
  }
}

/** @returns undefined on a file system without hard links */
async function tryLink(aside: string, path: string): Promise<boolean | undefined> {
  try {
    await link(aside, path);
    return true;
  } catch (error) {
    return codeOf(error) === "EEXIST" ? false : undefined;
  }
}

async function createInPlace(path: string, token: string): Promise<boolean> {
  try {
    await writeFile(path, token, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    // An empty lock would stop everybody for a minute.
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

/** @returns whether the lock is gone, or was broken */
async function breakIfStale(path: string): Promise<boolean> {
  const content = await contentOf(path);
  if (content === undefined) return true;
  const age = await ageOf(path);
  if (age === undefined) return true;
  // An empty file is one that its owner is writing, or died writing: age decides.
  const gone = content === "" ? undefined : ownerIsGone(content.split(" ")[0]!);
  if (gone !== true && age < STALE_MS) return false;
  // Move it away first: of several that break it only one succeeds, and what was moved can be looked at again.
  const aside = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return true;
    throw error;
  }
  const taken = await contentOf(aside);
  if (taken !== content) {
    // Another broke the old one and made its own in between: give that back.
    await rename(aside, path);
    return false;
  }
  await unlink(aside).catch(ignoreMissing);
  return true;
}

async function contentOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

async function ageOf(path: string): Promise<number | undefined> {
  try {
    return Date.now() - (await stat(path)).mtimeMs;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function ignoreMissing(error: unknown): void {
  if (codeOf(error) !== "ENOENT") throw error;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
