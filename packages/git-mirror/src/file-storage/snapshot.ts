import { link } from "node:fs/promises";
import { join } from "node:path";
import { ifExists } from "@devplat/base";
import type { Ref, Repository } from "@devplat/git-store";
import type { PackFileKind, SnapshotPack, StorageSnapshot } from "../storage/contract.ts";
import { RetainedRefs } from "./retained-refs.ts";
import { makeStagingFolder } from "./staging.ts";

const KINDS: readonly PackFileKind[] = ["pack", "idx", "rev", "bitmap"];

/**
 * Returns the packs and refs of a repository. The files are hard links in a staging folder, so that a repack does not remove
 * them. The caller holds the fill lock.
 */
export async function snapshotOf(
  repository: Repository,
  refs: ReadonlyMap<string, Ref>,
): Promise<StorageSnapshot> {
  await using held = new AsyncDisposableStack();
  const folder = held.use(await makeStagingFolder(repository.path));
  const linkInto = async (from: string, name: string): Promise<string | undefined> => {
    const target = join(folder.path, name);
    return (await ifExists(link(from, target).then(() => true))) === true ? target : undefined;
  };
  const packs: SnapshotPack[] = [];
  for (const { name } of repository.objects.packs.toReversed()) {
    const files: Partial<Record<PackFileKind, string>> = {};
    for (const kind of KINDS) {
      const file = `${name}.${kind}`;
      const path = await linkInto(join(repository.path, "objects", "pack", file), file);
      if (path !== undefined) files[kind] = path;
    }
    // The commit-graph is worth its bytes only for a pack with much of the history.
    if (files.bitmap !== undefined) {
      const graph = join(repository.path, "objects", "info", "commit-graph");
      const path = await linkInto(graph, `${name}.graph`);
      if (path !== undefined) files.graph = path;
    }
    packs.push({ name, files });
  }
  const { tips: retainedRefs } = await new RetainedRefs(repository.path).read();
  const owned = held.move();
  return { packs, refs, retainedRefs, [Symbol.asyncDispose]: async () => owned.disposeAsync() };
}
