import { WANTED_PREFIX, mergeRefs, type RetainedRef } from "@devplat/git-mirror";
import type { Ref } from "@devplat/git-store";

/** Maximum number of retained refs in a manifest, as in a mirror. */
const MAX_RETAINED = 8192;

export interface RefMerge {
  /** Refs of the manifest that both states come from. Undefined: it is not known, for instance after a restart. */
  readonly base: ReadonlyMap<string, Ref> | undefined;
  /** Refs of the mirror. */
  readonly local: ReadonlyMap<string, Ref>;
  /** Refs of the manifest. */
  readonly shared: readonly Ref[];
  /** Refs that the code host showed recently. They count most. */
  readonly shown: Iterable<Ref>;
  /** Whether an object is in the mirror. */
  readonly isHere: (oid: string) => boolean;
}

/**
 * Merges the refs of a mirror and of a manifest. A ref that changed on one side since the base gets the value of that side; of
 * two changes the local one counts, and without a base the shared one. A value that is lost becomes a retained ref.
 */
export function mergeSharedRefs({ base, local, shared, shown, isHere }: RefMerge): Map<string, Ref> {
  const theirs = new Set(shared.map(({ name }) => name));
  const isOurs = (name: string): boolean =>
    base === undefined ? !theirs.has(name) : local.get(name)?.oid !== base.get(name)?.oid;
  const ours = new Map([...local].filter(([name, { oid }]) => isOurs(name) && isNeeded(name, oid, isHere)));
  const others = shared.filter(({ name }) => !isOurs(name));
  const merged = mergeRefs(ours, others, [], () => false);
  const present = [...shown].filter(({ oid }) => isHere(oid));
  return mergeRefs(merged, present, [], () => false);
}

/** A wanted object that the maintainer of the packs has dropped is not needed any more. */
function isNeeded(name: string, oid: string, isHere: (oid: string) => boolean): boolean {
  return isHere(oid) || !name.startsWith(WANTED_PREFIX);
}

/** Retained refs that are young enough, oldest first. */
export function youngRefs(
  retained: readonly RetainedRef[],
  now: number,
  pruneAfterMs: number,
): RetainedRef[] {
  return retained.filter(({ since }) => now - since < pruneAfterMs).slice(-MAX_RETAINED);
}

/** Whether both have the same names and ids. */
export function isSameRefs(some: readonly Ref[], others: readonly Ref[]): boolean {
  if (some.length !== others.length) return false;
  const oids = new Map(others.map(({ name, oid }) => [name, oid]));
  return some.every(({ name, oid }) => oids.get(name) === oid);
}
