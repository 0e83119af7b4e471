import { randomBytes } from "node:crypto";
import { readdir, readFile, rename, rm, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { OWNER, ownerIsGone } from "./owner.ts";

/** Folders with temporary files, relative to the repository. */
const FOLDERS = [".", "objects", "objects/pack", "objects/info"];

/** Minimum age before removal, ms, for temporary files of an unknown owner and packs without index. */
const GRACE_MS = 60 * 60 * 1000;

/** Creates a temporary name `tmp_<kind>_<owner>_<random>`. Git also treats such files as leftovers. */
export function temporaryName(kind: string): string {
  return `tmp_${kind}_${OWNER}_${randomBytes(6).toString("hex")}`;
}

/**
 * Removes temporary files and folders of processes that have ended, and packs without index that a crash left between
 * two renames. Files of running processes stay.
 *
 * @returns paths of the removed files
 */
export async function removeLeftovers(repositoryPath: string): Promise<string[]> {
  const removed: string[] = [];
  for (const folder of FOLDERS) {
    const path = join(repositoryPath, folder);
    const names = new Set(await readdir(path).catch(() => []));
    for (const name of names) {
      if (!(await isLeftover(join(path, name), name, names))) continue;
      if (name.startsWith("tmp_reflock_")) removed.push(...(await removeLock(repositoryPath, name)));
      await rm(join(path, name), { recursive: true, force: true });
      removed.push(join(path, name));
    }
  }
  return removed;
}

/**
 * Removes the lock of a ref that is another name of this temporary file. Its new name keeps a second process from removing a lock
 * that was made since.
 *
 * @returns path of the lock
 */
async function removeLock(repositoryPath: string, name: string): Promise<string[]> {
  const claimed = join(repositoryPath, temporaryName("reflock"));
  try {
    await rename(join(repositoryPath, name), claimed);
  } catch {
    return [];
  }
  try {
    const { ino } = await stat(claimed, { bigint: true });
    for (const path of await lockFiles(repositoryPath)) {
      const facts = await stat(path, { bigint: true }).catch(() => undefined);
      if (facts?.ino !== ino) continue;
      await unlink(path);
      return [path];
    }
    return [];
  } finally {
    await unlink(claimed);
  }
}

/** Lock files of git for HEAD, `packed-refs` and refs. */
async function lockFiles(repositoryPath: string): Promise<string[]> {
  const names = (await readdir(repositoryPath)).filter((name) => name.endsWith(".lock"));
  const refs = await readdir(join(repositoryPath, "refs"), { recursive: true }).catch(() => []);
  names.push(...refs.filter((name) => name.endsWith(".lock")).map((name) => join("refs", name)));
  return names.map((name) => join(repositoryPath, name));
}

/**
 * Removes files in a folder that have a {@link temporaryName} of this kind, and whose process has ended. Never rejects: a file that
 * cannot be removed stays.
 */
export async function removeTemporaryFiles(folder: string, kind: string): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((each) => each.startsWith(`tmp_${kind}_`))) {
    const path = join(folder, name);
    if ((await isTemporaryOfEnded(path, name)) === true) await unlink(path).catch(() => undefined);
  }
}

/** Whether its process has ended. Undefined: it has no {@link temporaryName}. */
async function isTemporaryOfEnded(path: string, name: string): Promise<boolean | undefined> {
  const owner = /^tmp_.*_([0-9a-f]+\.[0-9]+\.[0-9a-f]+)_[0-9a-f]+$/u.exec(name)?.[1];
  return owner === undefined ? undefined : (ownerIsGone(owner) ?? (await isOld(path)));
}

async function isLeftover(path: string, name: string, names: ReadonlySet<string>): Promise<boolean> {
  const isOfEnded = await isTemporaryOfEnded(path, name);
  if (isOfEnded !== undefined) return isOfEnded;
  if (/^pack-[0-9a-f]+\.keep$/u.test(name)) return isKeepOfEnded(path);
  // Temporary files of stock git, and stale locks that are being removed.
  if (/^tmp_(?:pack|idx|rev|obj)_|\.lock~\.[0-9a-f]+$/u.test(name)) return isOld(path);
  const pack = /^(pack-[0-9a-f]+)\.(?:pack|rev|bitmap|reach)$/u.exec(name);
  return pack !== null && !names.has(`${pack[1]}.idx`) && isOld(path);
}

/** Whether a push made this file, whose process has ended. */
async function isKeepOfEnded(path: string): Promise<boolean> {
  const owner = /^receive-pack ([0-9a-f]+\.[0-9]+\.[0-9a-f]+)\n$/u.exec(
    await readFile(path, "utf8").catch(() => ""),
  )?.[1];
  return owner !== undefined && (ownerIsGone(owner) ?? (await isOld(path)));
}

async function isOld(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && Date.now() - found.mtimeMs > GRACE_MS;
}
