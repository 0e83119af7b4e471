import type { ObjectFormat } from "@devplat/git-protocol";
import type { PreparedSeed, SeedKind, ShownRefs } from "@devplat/git-store/seed";

export type { SeedFile, SeedKind, ShownRefs } from "@devplat/git-store/seed";

/**
 * A pack with exactly the objects that some refs reached at one time, with its indexes, for clients that take the files as
 * they are. Its files are immutable.
 */
export interface StoredSeed extends PreparedSeed {
  /** Upstream of its objects. */
  readonly origin: string;
  readonly format: ObjectFormat;
  /** Full name of the branch that HEAD named. Undefined: HEAD named a commit. */
  readonly headRef: string | undefined;
  /** Milliseconds since the epoch. */
  readonly madeAt: number;
}

/** Identity of a file on disk. Another file in its place, or a write to it, changes it. */
export interface FileIdentity {
  readonly ino: number;
  readonly mtimeMs: number;
}

/** Files of a seed that have the SHA-256 of the time when they were made. A seed with all of them is sound. */
export type SoundSeedFiles = Readonly<Partial<Record<SeedKind, FileIdentity>>>;

/** Refs and rules of a seed that is to be made. */
export interface SeedMaking {
  readonly shown: ShownRefs;
  /** Makes the seed even if the last one has almost all of its objects. */
  readonly always: boolean;
  readonly signal: AbortSignal;
}
