import { chmod, rename, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { exists, syncFolder } from "@devplat/base";
import { GitStoreError, syncFile } from "@devplat/git-store";
import type { PackFileKind, StagedPack } from "../storage/contract.ts";
import { PACK_NAME } from "./pack-name.ts";

/** Milliseconds between the times of two packs, because the order of packs is that of their times. */
const TIME_STEP_MS = 10;
/** Stock git does not write to packs either. */
const PACK_MODE = 0o444;
const KINDS_BEFORE_INDEX: readonly PackFileKind[] = ["pack", "rev", "bitmap"];

/**
 * Moves complete packs from a staging folder into a repository. The caller holds the fill lock, and has begun the fill journal,
 * which removes the packs again after a crash.
 *
 * @returns whether a commit-graph came with them
 * @throws GitStoreError `not_a_pack`: a name is not that of a pack; a system error
 */
export async function adoptPacks(
  repositoryPath: string,
  stagingPath: string,
  packs: readonly StagedPack[],
): Promise<boolean> {
  const target = join(repositoryPath, "objects", "pack");
  for (const { name } of packs) checkName(name);
  const missing: StagedPack[] = [];
  for (const pack of packs) if (!(await exists(join(target, `${pack.name}.idx`)))) missing.push(pack);
  if (missing.length === 0) return false;
  const staged = (name: string, kind: string): string => join(stagingPath, `${name}.${kind}`);
  await Promise.all(missing.flatMap(({ name, kinds }) => kinds.map((kind) => syncFile(staged(name, kind)))));
  const latest = (await stat(staged(missing.at(-1)!.name, "idx"))).mtimeMs;
  for (const [at, { name, kinds }] of missing.entries()) {
    const time = new Date(latest - (missing.length - at) * TIME_STEP_MS);
    await utimes(staged(name, "pack"), time, time);
    for (const kind of KINDS_BEFORE_INDEX) {
      if (!kinds.includes(kind)) continue;
      await chmod(staged(name, kind), PACK_MODE);
      await rename(staged(name, kind), join(target, `${name}.${kind}`));
    }
  }
  // These files must be on disk before the .idx, which makes the pack visible.
  await syncFolder(target);
  for (const { name } of missing) {
    await chmod(staged(name, "idx"), PACK_MODE);
    await rename(staged(name, "idx"), join(target, `${name}.idx`));
  }
  await syncFolder(target);
  const graph = missing.findLast(({ kinds }) => kinds.includes("graph"));
  if (graph === undefined) return false;
  await rename(staged(graph.name, "graph"), join(repositoryPath, "objects", "info", "commit-graph"));
  await syncFolder(join(repositoryPath, "objects", "info"));
  return true;
}

function checkName(name: string): void {
  if (PACK_NAME.test(name)) return;
  throw new GitStoreError(
    "not_a_pack",
    `adopt the pack ${JSON.stringify(name)}: that is not the name of a pack`,
  );
}
