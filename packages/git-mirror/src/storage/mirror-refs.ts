import { isRefName, type Ref } from "@devplat/git-store";

/** Where objects are kept by that were wanted by id and are no tip that is known. */
export const WANTED_PREFIX = "refs/wanted/";

/**
 * The refs of a store after a fetch: what it had, what the code host showed of late, and a name for each want that has
 * none. A name that is now a folder of others, or the other way round, loses its old meaning.
 *
 * @param shown tips whose objects are in the store
 * @param gone whether the code host is known to have no ref of a name any more, unless it is among those shown
 */
export function mergeRefs(
  before: ReadonlyMap<string, Ref>,
  shown: Iterable<Ref>,
  wants: readonly string[],
  gone: (name: string) => boolean = () => false,
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
    if (!merged.has(ref.name) && !clashes && !gone(ref.name)) add(ref);
  }
  for (const oid of wants) if (!oids.has(oid)) add({ name: WANTED_PREFIX + oid, oid });
  return merged;
}

/**
 * Ids that lose their name when refs change, and those of objects that only got one for being wanted: what they reach
 * stays for a while.
 */
export function formerOids(before: ReadonlyMap<string, Ref>, after: ReadonlyMap<string, Ref>): Set<string> {
  const named = new Set([...after.values()].map(({ oid }) => oid));
  const lost = [...before.values()].filter(({ oid }) => !named.has(oid));
  const wanted = [...after.values()].filter(
    ({ name }) => name.startsWith(WANTED_PREFIX) && !before.has(name),
  );
  return new Set([...lost, ...wanted].map(({ oid }) => oid));
}

function foldersOf(name: string): string[] {
  const parts = name.split("/");
  return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join("/"));
}
