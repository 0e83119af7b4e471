import type { Ref } from "@devplat/git-store";
import type { RepositoryId } from "./repository-id.ts";

/** Tips of recent authorizations, as they were at one time. */
export interface RecentTips {
  /** By full name; `HEAD` is not among them. */
  readonly refs: ReadonlyMap<string, Ref>;
  /** HEAD's commit. */
  readonly head: string | undefined;
  /** What all of them name. */
  readonly oids: ReadonlySet<string>;
}

/** The tips that the code host showed lately. */
export interface TipSource {
  /** Whether the object is a tip. */
  isTip(oid: string): boolean;
  /** The same object until a tip changes. */
  recent(): RecentTips;
}

/** A repository, and the tips that the code host showed of it. */
export interface MirroredRepository {
  readonly id: RepositoryId;
  readonly tips: TipSource;
}
