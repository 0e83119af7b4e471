import { EMPTY_CONTENT, type Manifest, type ManifestContent, type StoredObject } from "./manifest.ts";
import type { Remembered } from "./manifest-memory.ts";

/** Content, generation, epoch and fence to start a change from. */
export interface ManifestBase {
  readonly content: ManifestContent;
  /** 0: there was none before. */
  readonly generation: number;
  readonly epoch: number;
  readonly fence: number;
}

/**
 * The base for the next manifest: the newest one of the known epoch, or an empty one of that epoch. An authentic manifest of
 * an older epoch gives its names as tombstones.
 */
export function baseOf({ stored, newest }: Remembered, epoch: number, now: number): ManifestBase {
  const known = [stored, newest].filter((each) => each !== undefined);
  const highest = (of: (manifest: Manifest) => number): number => Math.max(0, ...known.map(of));
  const generation = highest((each) => each.generation);
  const fence = highest((each) => each.fence);
  if (newest?.epoch === epoch) return { content: newest, generation, epoch, fence };
  return { content: emptyAfter(known, generation + 1, now), generation, epoch, fence };
}

/** Content without objects: all names of these manifests are tombstones. The collector has not seen their end yet. */
export function emptyAfter(before: readonly Manifest[], generation: number, at: number): ManifestContent {
  const names = before.flatMap((each) => [...namedObjects(each), ...each.tombstones.map(({ name }) => name)]);
  return { ...EMPTY_CONTENT, tombstones: [...new Set(names)].map((name) => ({ name, generation, at })) };
}

/** Names of all objects that the content needs. */
export function namedObjects({ packs, responses }: ManifestContent): string[] {
  const objects: StoredObject[] = [
    ...packs.flatMap(({ files }) => Object.values(files)),
    ...responses.map(({ object }) => object),
  ];
  return objects.map(({ name }) => name);
}

/**
 * The content with a tombstone for each object that the content before names and this one does not. Tombstones of objects that
 * are named again go.
 *
 * @param generation of the manifest that will have this content
 */
export function withTombstones(
  before: ManifestContent,
  content: ManifestContent,
  generation: number,
  at: number,
): ManifestContent {
  const named = new Set(namedObjects(content));
  const dead = new Set(content.tombstones.map(({ name }) => name));
  const lost = namedObjects(before).filter((name) => !named.has(name) && !dead.has(name));
  const kept = content.tombstones.filter(({ name }) => !named.has(name));
  if (lost.length === 0 && kept.length === content.tombstones.length) return content;
  const added = [...new Set(lost)].map((name) => ({ name, generation, at }));
  return { ...content, tombstones: [...kept, ...added] };
}
