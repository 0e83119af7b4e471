import type { ObjectFormat } from "@devplat/git-protocol";
import type { Ref } from "@devplat/git-store";

/** Bytes that one checksum of a slice list covers. */
export const SLICE_BYTES = 1024 * 1024;

/** An immutable object in the bucket. Its bytes are trusted only as far as they have these checksums. */
export interface StoredObject {
  /** Name below the folder of the repository, such as `responses/<key>-<writer>-<random>`. */
  readonly name: string;
  /** Bytes. */
  readonly length: number;
  /**
   * In hex. A response with a slice list has that of the list here, which covers each byte: to hash the whole would cost as
   * much again.
   */
  readonly sha256: string;
  /** SHA-256 in hex of the slice list, the object `<name>.slices`. Undefined: the object is one slice and has no list. */
  readonly slicesSha256: string | undefined;
}

/** Files of a pack. `pack` and `idx` are needed, the others save time. */
export type PackFile = "pack" | "idx" | "rev" | "bitmap" | "graph";

/** A pack of the mirror. */
export interface ManifestPack {
  /** Name in a repository: `pack-<checksum>`. */
  readonly pack: string;
  readonly files: Readonly<Partial<Record<PackFile, StoredObject>>>;
}

/** A stored response. */
export interface ManifestResponse {
  /** 64 hex characters, see response-key.ts. */
  readonly key: string;
  readonly object: StoredObject;
  /** Last use by any instance, as far as one has told; milliseconds since the epoch. */
  readonly usedAt: number;
}

/** An object that no manifest names any more. The collector deletes it after a while. */
export interface Tombstone {
  readonly name: string;
  /** Generation of the first manifest that did not name it. */
  readonly generation: number;
  /** Clock of the store at that time; milliseconds since the epoch. */
  readonly at: number;
}

/** Content of a manifest that its writers change. */
export interface ManifestContent {
  /** Undefined: there are no packs. */
  readonly objectFormat: ObjectFormat | undefined;
  readonly packs: readonly ManifestPack[];
  readonly responses: readonly ManifestResponse[];
  /** Refs of the mirror. The packs together have all objects that they reach. */
  readonly refs: readonly Ref[];
  /** See RetainedRefs in the mirror. Oldest first. */
  readonly retainedRefs: readonly { readonly oid: string; readonly since: number }[];
  readonly tombstones: readonly Tombstone[];
}

/** The one object of a repository that changes. It names all other objects that count. */
export interface Manifest extends ManifestContent {
  /** 1 for the first one, one more for each next one. */
  readonly generation: number;
  /** Raised by DELETE, purge and disable. Manifests of a lower epoch than the database knows are not used. */
  readonly epoch: number;
  /** Fencing number of the lease under which it was written; 0 without a lease. Never smaller than that of the one before. */
  readonly fence: number;
  /** Clock of the store, milliseconds since the epoch. */
  readonly writtenAt: number;
  /** Id of the instance. */
  readonly writtenBy: string;
}

/** Content of the first manifest of an epoch. */
export const EMPTY_CONTENT: ManifestContent = {
  objectFormat: undefined,
  packs: [],
  responses: [],
  refs: [],
  retainedRefs: [],
  tombstones: [],
};
