const MiB = 2 ** 20;
const GiB = 2 ** 30;

/** Limits for an incoming pack. A pack beyond them is refused as `too_large` or `delta_bomb`. */
export interface IndexPackLimits {
  /** Bytes of the pack. Default 64 GiB. */
  readonly packBytes: number;
  /** Objects in the pack. Default 50 million (the largest public repositories have about 20). */
  readonly objects: number;
  /** Inflated bytes of one object that is not a delta; it is hashed piece by piece. Default 16 GiB. */
  readonly objectBytes: number;
  /**
   * Inflated bytes of a delta, of its base and of its result, which are all held in memory.
   * Default 512 MiB, git's `core.bigFileThreshold`, above which git makes no deltas.
   */
  readonly deltaObjectBytes: number;
  /**
   * Inflated bytes of all objects together. Default 8 GiB + 2048 × the pack's bytes. Real packs expand 10 to 60 times
   * (the git project's: 26). A pack of one kilobyte that expands to terabytes is an attack.
   */
  readonly expandedBytes: number | undefined;
}

export const DEFAULT_LIMITS: IndexPackLimits = {
  packBytes: 64 * GiB,
  objects: 50_000_000,
  objectBytes: 16 * GiB,
  deltaObjectBytes: 512 * MiB,
  expandedBytes: undefined,
};

/** See {@link IndexPackLimits.expandedBytes}. */
export function expandedLimit(limits: IndexPackLimits, packBytes: number): number {
  return limits.expandedBytes ?? 8 * GiB + 2048 * packBytes;
}

/** Memory for live objects of the delta forest, bytes per thread. Git's `core.deltaBaseCacheLimit` is 96 MiB. */
export const DEFAULT_DELTA_WINDOW_BYTES = 32 * MiB;
/**
 * Memory for pages of the pack while deltas are resolved, bytes over all threads. Bases are close to their deltas:
 * 4 MiB and 64 MiB took the same time with packs of 10 and 140 MB.
 */
export const DEFAULT_PACK_WINDOW_BYTES = 16 * MiB;
