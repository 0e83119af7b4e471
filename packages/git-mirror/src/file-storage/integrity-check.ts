import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { writeAtomically } from "@devplat/base";
import { GitStoreError, checkIndexes, type Ref, type Repository } from "@devplat/git-store";
import type { JobRunner } from "../threads/job.ts";
import { PacksKnownSound } from "./packs-known-sound.ts";
import { FillJournal } from "./fill-journal.ts";
import { isUnreadable } from "@devplat/base/file-damage";
import { quarantineFile } from "./quarantine.ts";

/** File in a repository while a repair removes packs from it. */
export const REPAIR_MARK = "repairing~";

/** Refs that are looked up between two turns of the event loop: about 5 ms. */
const REFS_PER_TURN = 2000;

/**
 * Checks a repository when it is opened: refs and indexes each time, in the memory in which they are used; packs if they
 * are not known to be sound.
 *
 * @throws GitStoreError, JobFailure if something differs from what was written
 */
export async function checkIntegrity(
  repository: Repository,
  jobs: JobRunner,
  signal: AbortSignal,
): Promise<void> {
  if (await isRepairInterrupted(repository.path)) {
    throw new GitStoreError(
      "corrupt_repository",
      "open the repository: a repair of its packs was interrupted",
    );
  }
  await recover(repository);
  await repairHead(repository);
  // Refs first: another process stores objects before it names them.
  const refs = await repository.refs();
  repository.objects.refresh();
  await checkIndexes(repository.objects, signal);
  await checkPacks(repository, jobs);
  await checkRefs(repository, refs);
}

/** Removes what a killed process left. Files of a running process stay. */
export async function recover(repository: Repository): Promise<void> {
  await repository.removeLeftovers();
  const journal = new FillJournal(repository.path);
  if (!(await journal.isOpen())) return;
  try {
    await using held = new AsyncDisposableStack();
    held.use(await repository.lock("fill"));
    await journal.undo();
  } catch (error) {
    if (!(error instanceof GitStoreError) || error.code !== "locked") throw error;
  }
}

/** @throws JobFailure if a pack does not match its checksum */
async function checkPacks(repository: Repository, jobs: JobRunner): Promise<void> {
  const known = new PacksKnownSound(repository.path);
  const names = repository.objects.packs.map(({ name }) => name);
  const unchecked = await known.unchecked(names);
  if (unchecked.length > 0) {
    const packs = repository.objects.packs.filter(({ name }) => unchecked.includes(name));
    await jobs.run({ kind: "checksum", format: repository.format, packs: packs.map(({ path }) => path) });
  }
  await known.record(names, unchecked);
}

/**
 * Checks that each ref names an object that is here.
 *
 * @throws GitStoreError `missing_object`: `packed-refs` is damaged, or a pack is gone
 */
async function checkRefs(repository: Repository, refs: ReadonlyMap<string, Ref>): Promise<void> {
  let count = 0;
  for (const { name, oid } of refs.values()) {
    if (!repository.objects.has(oid)) {
      throw new GitStoreError(
        "missing_object",
        `read ${repository.path}: the ref ${name} names a missing object`,
        {
          oid,
        },
      );
    }
    if (++count % REFS_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Replaces a damaged `HEAD`. Only stock git reads it, which takes a folder without it for another kind of folder. */
async function repairHead(repository: Repository): Promise<void> {
  try {
    await repository.head();
  } catch (error) {
    const isDamaged = error instanceof GitStoreError && error.code === "corrupt_repository";
    if (!isDamaged && !isUnreadable(error)) throw error;
    await quarantineFile(repository.path, join(repository.path, "HEAD"));
    await writeHead(repository.path);
  }
}

/** Writes a `HEAD`. Its branch does not matter, because clients get the HEAD of the upstream. */
export async function writeHead(repositoryPath: string): Promise<void> {
  await writeAtomically(join(repositoryPath, "HEAD"), "ref: refs/heads/main\n", { mode: 0o644 });
}

/** Whether a repair was interrupted. Then refs may name missing objects. */
export async function isRepairInterrupted(path: string): Promise<boolean> {
  return (await readdir(path)).includes(REPAIR_MARK);
}
