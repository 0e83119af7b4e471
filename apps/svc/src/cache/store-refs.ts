import { isRefName, type Ref } from "@devplat/git-store";

/** Where objects are kept by that were wanted by id and are no tip that is known. */
const WANTED_PREFIX = "refs/wanted/";

/**
 * The refs of a store after a fetch: what it had, what the code host showed of late, and a name for each want that has
 * none. A name that is now a folder of others, or the other way round, loses its old meaning.
 *
 * @param shown tips whose objects are in the store
 */
export function mergeRefs(
  before: ReadonlyMap<string, Ref>,
  shown: Iterable<Ref>,
  wants: readonly string[],
): Map<string, Ref> {
  const merged = new Map<string, Ref>();
  const folders = new Set<string>();
  const oids = new Set<string>();
  const add = (ref: Ref): void => {
    merged.set(ref.name, ref);
    oids.add(ref.oid);
    for (const folder of foldersOf(ref.name)) folders.add(folder);
  };
  for (const ref of shown) if (ref.name.startsWith("refs/") && isRefName(ref.name)) add(ref);
  for (const ref of before.values()) {
    const clashes = folders.has(ref.name) || foldersOf(ref.name).some((folder) => merged.has(folder));
    if (!merged.has(ref.name) && !clashes) add(ref);
  }
  for (const oid of wants) if (!oids.has(oid)) add({ name: WANTED_PREFIX + oid, oid });
  return merged;
}

function foldersOf(name: string): string[] {
  const parts = name.split("/");
  return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join("/"));
}
