import type { ObjectFormat } from "@devplat/git-protocol";
import type { Ref } from "@devplat/git-store";
import type { StoredRepository } from "../storage/contract.ts";
import { mergeRefs } from "../storage/refs.ts";

/** One fill of a mirror. */
export interface Fill {
  /**
   * Returns the bytes of the pack, thin or not; a part is valid until the next one. Called when the turn of the fill comes, and only if a want is missing.
   *
   * @param refs refs of the mirror, which the upstream can be told as haves
   */
  readonly open: (refs: ReadonlyMap<string, Ref>) => Promise<AsyncIterable<Uint8Array>>;
  readonly format: ObjectFormat;
  /** Ids that must be in the mirror after the fill. */
  readonly wants: readonly string[];
  /** Refs that the upstream showed. Those whose objects are in the mirror become its refs. */
  readonly shown: Iterable<Ref>;
  /** Whether the fill does nothing if the mirror has refs when its turn comes. Default false. */
  readonly ifEmpty?: boolean;
  /** Whether the pack is on this machine. Then it is read as fast as it is indexed. Default false. */
  readonly isLocal?: boolean;
  /** Prefixes below which `shown` has all refs of the upstream. Other refs below them are dropped. Default none. */
  readonly covered?: readonly string[];
}

/** Prefixes of branches and tags: an upstream can be asked for all of their refs. */
export const SURVEYED_PREFIXES: readonly string[] = ["refs/heads/", "refs/tags/"];

/** Refs of a mirror after a fill whose objects are in the repository. */
export function refsAfter(
  { objects }: StoredRepository,
  before: ReadonlyMap<string, Ref>,
  { shown, covered = [], wants }: Fill,
): Map<string, Ref> {
  const all = [...shown];
  const present = all.filter(({ oid }) => objects.has(oid));
  const names = new Set(all.map(({ name }) => name));
  const isDropped = (name: string): boolean =>
    !names.has(name) && covered.some((prefix) => name.startsWith(prefix));
  return mergeRefs(before, present, wants, isDropped);
}
