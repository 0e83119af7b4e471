import { isRefName, type Ref } from "@devplat/git-store";

/** Prefix of refs that keep objects which were wanted by their id and are not a known tip. */
export const WANTED_PREFIX = "refs/wanted/";

/**
 * Merges the refs of a mirror after a fill: its refs, those that the upstream showed recently, and a ref for each want
 * without one. A shown ref replaces refs whose names are its folders, or are below it.
 *
 * @param shown tips whose objects are in the mirror
 * @param isDropped whether the upstream dropped the ref of a name that is not among those shown
 */
export function mergeRefs(
  before: ReadonlyMap<string, Ref>,
  shown: Iterable<Ref>,
  wants: readonly string[],
  isDropped: (name: string) => boolean,
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
    if (!merged.has(ref.name) && !clashes && !isDropped(ref.name)) add(ref);
  }
  for (const oid of wants) if (!oids.has(oid)) add({ name: WANTED_PREFIX + oid, oid });
  return merged;
}

/**
 * Returns the ids that become retained when refs change: those that lose their last ref, and those that have one only
 * because they were wanted.
 */
export function oidsToRetain(before: ReadonlyMap<string, Ref>, after: ReadonlyMap<string, Ref>): Set<string> {
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
