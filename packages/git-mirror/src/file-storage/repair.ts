import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { GitStoreError, type Ref, type Repository } from "@devplat/git-store";
import { isUnreadable } from "@devplat/base/file-damage";
import { removeSeeds } from "../seeds/file-seeds.ts";
import { quarantineFile } from "./quarantine.ts";
import { REPAIR_MARK, isRepairInterrupted } from "./integrity-check.ts";
import { RetainedRefs } from "./retained-refs.ts";
import type { RepairResult } from "../storage/contract.ts";
import type { JobRunner } from "../threads/job.ts";
import { mergeRefs, oidsToRetain } from "../storage/refs.ts";

/**
 * Removes damaged packs, and sound packs that need their objects, so that the rest is complete. Removed objects are
 * fetched again when a request wants them. The caller holds the fill lock.
 *
 * @param repository opened with `skipFaulty`
 * @param now milliseconds since the epoch
 * @returns undefined if nothing is left, or no pack is damaged: then the repository must be quarantined
 */
export async function repair(
  repository: Repository,
  jobs: JobRunner,
  now: number,
): Promise<RepairResult | undefined> {
  const { path, format } = repository;
  const before = await refsOf(repository);
  const areRefsWrong =
    before === undefined || [...before.values()].some(({ oid }) => !repository.objects.has(oid));
  const isUnfinished = areRefsWrong || (await isRepairInterrupted(path));
  const { damaged, incomplete, sound, heads } = await jobs.run({ kind: "damage", path, format });
  if (sound.length === 0 || (damaged.length === 0 && !isUnfinished)) return undefined;
  await writeFile(join(path, REPAIR_MARK), "");
  for (const name of damaged) await repository.quarantinePack(name);
  // The pack of a seed can be the same file.
  for (const name of damaged) await removeSeeds(path, name);
  for (const name of incomplete) await repository.removePack(name);
  await repository.removeCommitGraph();
  if (areRefsWrong) await quarantineFile(path, join(path, "packed-refs"));
  const here = [...(before?.values() ?? [])].filter(({ oid }) => repository.objects.has(oid));
  // The heads of what is left are haves of the next fetch.
  const refs = mergeRefs(new Map(), here, heads, () => false);
  if (refs.size === 0) return undefined;
  await new RetainedRefs(path).add(oidsToRetain(before ?? new Map(), refs), now);
  await repository.replaceRefs(refs.values());
  await rm(join(path, REPAIR_MARK));
  return { damaged, incomplete };
}

/** Reads the refs. @returns undefined if they cannot be read */
async function refsOf(repository: Repository): Promise<ReadonlyMap<string, Ref> | undefined> {
  try {
    return await repository.refs();
  } catch (error) {
    if (error instanceof GitStoreError || isUnreadable(error)) return undefined;
    throw error;
  }
}
