import type { ManifestContent, ManifestPack, Tombstone } from "../manifest/manifest.ts";

/** Checksum in the name of the object of a `.pack` file, see newPackName. */
const PACK_OBJECT = /^packs\/.*-([0-9a-f]{40}|[0-9a-f]{64})\.pack$/u;

/** Names of the packs, `pack-<checksum>`. */
export function namesOf(packs: readonly ManifestPack[]): Set<string> {
  return new Set(packs.map(({ pack }) => pack));
}

/** Names of packs that the manifest does not name any more, as long as it has their tombstones. */
export function replacedPacks({ packs, tombstones }: ManifestContent): Set<string> {
  return packsOfTombstones(tombstones).difference(namesOf(packs));
}

function packsOfTombstones(tombstones: readonly Tombstone[]): Set<string> {
  const checksums = tombstones.map(({ name }) => PACK_OBJECT.exec(name)?.[1]);
  return new Set(checksums.filter((each) => each !== undefined).map((each) => `pack-${each}`));
}

/** Bytes of all files of packs. */
export function bytesOf(packs: readonly ManifestPack[]): number {
  return packs.flatMap(({ files }) => Object.values(files)).reduce((sum, { length }) => sum + length, 0);
}

/** Whether two lists name the same objects. Their order saves time only. */
export function isSamePacks(some: readonly ManifestPack[], others: readonly ManifestPack[]): boolean {
  const keys = new Set(some.map(packKey));
  return some.length === others.length && others.every((pack) => keys.has(packKey(pack)));
}

/** Text that tells the upload of a pack from every other one. */
export function packKey({ pack, files }: ManifestPack): string {
  return `${pack} ${files.pack?.name}`;
}
