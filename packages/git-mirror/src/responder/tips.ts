import type { Ref } from "@devplat/git-store";

/** Refs that the upstream showed recently, at one time. */
export interface RecentTips {
  /** By full name, without `HEAD`. */
  readonly refs: ReadonlyMap<string, Ref>;
  /** Commit of HEAD. */
  readonly head: string | undefined;
  /** Ids of all refs and of HEAD. */
  readonly oids: ReadonlySet<string>;
}

/** Source of the refs that the upstream showed recently. */
export interface TipSource {
  /** Whether a recent ref names the object. */
  isTip(oid: string): boolean;
  /** Returns the recent refs. The same object until a ref changes. */
  recent(): RecentTips;
}
