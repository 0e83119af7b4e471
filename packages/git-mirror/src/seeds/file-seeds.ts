import { mkdir, open, rename, rm, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { folderNames, ifExists, syncFolder } from "@devplat/base";
import { isUnreadable } from "@devplat/base/file-damage";
import { readSealed, writeSealed } from "@devplat/base/sealed-file";
import { READ_FLAGS, temporaryName, type Repository } from "@devplat/git-store";
import type { SeedKind, SeedMaking, StoredSeed } from "../storage/seed.ts";
import type { JobRunner } from "../threads/job.ts";
import { lockIfFree } from "../file-storage/lock-if-free.ts";
import { PACK_NAME, SEEDS_FOLDER } from "../file-storage/pack-name.ts";
import { makeStagingFolder } from "../file-storage/staging.ts";

/** Describes a seed. Written last. */
const DESCRIPTION = "seed.json";
/** Seeds that are kept: a client may still download the last but one. */
const KEPT = 2;
/** A seed is made when more than this share of objects is new (issue 21). A client fetches the others after the seed. */
const MIN_SHARE = 0.05;

/** Returns the seeds of a repository, newest first. Damaged ones, and those from another origin, are left out. */
export async function readSeeds(repositoryPath: string, origin: string): Promise<StoredSeed[]> {
  const folder = join(repositoryPath, SEEDS_FOLDER);
  const found: StoredSeed[] = [];
  for (const name of await folderNames(folder)) {
    if (!PACK_NAME.test(name)) continue;
    const description = await readSealed(join(folder, name, DESCRIPTION));
    if (isSeed(description, name) && description.origin === origin) found.push(description);
  }
  return found.toSorted((a, b) => b.madeAt - a.madeAt);
}

/** Opens a file of a seed. @returns undefined if it is not there, or something else is in its place */
export async function openSeedFile(
  repositoryPath: string,
  name: string,
  kind: SeedKind,
): Promise<FileHandle | undefined> {
  if (!PACK_NAME.test(name)) return undefined;
  try {
    return await ifExists(open(join(repositoryPath, SEEDS_FOLDER, name, `${name}.${kind}`), READ_FLAGS));
  } catch (error) {
    if (isUnreadable(error)) return undefined;
    throw error;
  }
}

/**
 * Makes a seed in a staging folder, which then gets its name. Removes all seeds but the last two.
 *
 * @returns undefined if none was made
 * @throws JobFailure, GitStoreError, a system error
 */
export async function makeSeed(
  repository: Repository,
  { shown, always, signal }: SeedMaking,
  { jobs, now, origin }: { readonly jobs: JobRunner; readonly now: number; readonly origin: string },
): Promise<StoredSeed | undefined> {
  await using held = new AsyncDisposableStack();
  const lock = await lockIfFree(repository, "seed");
  if (lock === undefined) return undefined;
  held.use(lock);
  const [last] = await readSeeds(repository.path, origin);
  const staging = held.use(await makeStagingFolder(repository.path));
  const prepared = await jobs.run({
    kind: "seed",
    objects: repository.objects.shared(),
    folder: staging.path,
    shown,
    last: always || last === undefined ? undefined : { tips: last.tips, objects: last.objects },
    minShare: MIN_SHARE,
  });
  signal.throwIfAborted();
  if (prepared === undefined) return undefined;
  const { format } = repository;
  // Two seeds within one millisecond must not change places.
  const madeAt = Math.max(now, (last?.madeAt ?? 0) + 1);
  const seed: StoredSeed = { ...prepared, origin, format, headRef: shown.headRef, madeAt };
  await writeSealed(join(staging.path, DESCRIPTION), seed);
  await syncFolder(staging.path);
  const folder = join(repository.path, SEEDS_FOLDER);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await removeSeed(repository.path, seed.name);
  await rename(staging.path, join(folder, seed.name));
  await syncFolder(folder);
  // A folder whose description is damaged, or from another origin, goes, too.
  const kept = (await readSeeds(repository.path, origin)).slice(0, KEPT).map(({ name }) => name);
  for (const name of await folderNames(folder)) {
    if (!kept.includes(name)) await removeSeed(repository.path, name);
  }
  return seed;
}

/**
 * Removes seeds. A process that makes one may add it after this.
 *
 * @param name of the only one. Default all
 * @returns how many were removed
 */
export async function removeSeeds(repositoryPath: string, name?: string): Promise<number> {
  const names = name === undefined ? await folderNames(join(repositoryPath, SEEDS_FOLDER)) : [name];
  let count = 0;
  for (const each of names) if (PACK_NAME.test(each) && (await removeSeed(repositoryPath, each))) count++;
  return count;
}

/**
 * Removes a seed. It disappears immediately. A crash leaves a folder that the next opening of the repository removes.
 *
 * @returns whether it was there
 */
async function removeSeed(repositoryPath: string, name: string): Promise<boolean> {
  const removed = join(repositoryPath, temporaryName("seed"));
  const isThere = await ifExists(rename(join(repositoryPath, SEEDS_FOLDER, name), removed).then(() => true));
  if (isThere !== true) return false;
  await rm(removed, { recursive: true, force: true });
  return true;
}

function isSeed(description: unknown, name: string): description is StoredSeed {
  return (
    typeof description === "object" &&
    description !== null &&
    "name" in description &&
    description.name === name
  );
}
