import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { GitStoreError, type Ref, type Repository } from "@devplat/git-store";
import { isUnreadable } from "@devplat/base/file-damage";
import { quarantineFile } from "./quarantine.ts";
import { FormerTips } from "./retained-refs.ts";
import type { ProofThread } from "../threads/check-thread.ts";
import { formerOids, mergeRefs } from "./mirror-refs.ts";

/** Stands in a repository while packs are being taken out of it. */
const MARK = "repairing~";

/** What a repair did. */
export interface Repaired {
  /** Damaged packs, now in the repository's `corrupt` folder. */
  readonly aside: readonly string[];
  /** Sound packs that counted on those; removed. */
  readonly removed: readonly string[];
}

/** Whether a repair was broken off: refs may then name what is not there. */
export async function repairWasCutShort(path: string): Promise<boolean> {
  return (await readdir(path)).includes(MARK);
}

/**
 * Takes damaged packs out of a store, and what counts on them, so that what is left is complete in itself. What is gone is
 * fetched again when somebody wants it. To be called under the repository's fill lock.
 *
 * @param repository opened with `skipFaulty`
 * @param now milliseconds since the epoch
 * @returns undefined when nothing is left, or no pack is to blame: then the store as a whole must make room
 */
export async function repair(
  repository: Repository,
  thread: Pick<ProofThread, "do">,
  now: number,
): Promise<Repaired | undefined> {
  const { path, format } = repository;
  const before = await refsOf(repository);
  const isAmiss =
    before === undefined || [...before.values()].some(({ oid }) => !repository.objects.has(oid));
  const again = isAmiss || (await repairWasCutShort(path));
  const { damaged, incomplete, sound, heads } = await thread.do({ kind: "repair", path, format });
  if (sound.length === 0 || (damaged.length === 0 && !again)) return undefined;
  await writeFile(join(path, MARK), "");
  for (const name of damaged) await repository.quarantinePack(name);
  for (const name of incomplete) await repository.removePack(name);
  await repository.removeCommitGraph();
  if (isAmiss) await quarantineFile(path, join(path, "packed-refs"));
  const here = [...(before?.values() ?? [])].filter(({ oid }) => repository.objects.has(oid));
  // The tips of what is left are haves for fetching what is gone.
  const refs = mergeRefs(new Map(), here, heads);
  if (refs.size === 0) return undefined;
  await new FormerTips(path).add(formerOids(before ?? new Map(), refs), now);
  await repository.replaceRefs(refs.values());
  await rm(join(path, MARK));
  return { aside: damaged, removed: incomplete };
}

/** @returns undefined: they cannot be read */
async function refsOf(repository: Repository): Promise<ReadonlyMap<string, Ref> | undefined> {
  try {
    return await repository.refs();
  } catch (error) {
    if (error instanceof GitStoreError || isUnreadable(error)) return undefined;
    throw error;
  }
}
