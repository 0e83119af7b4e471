import type { ObjectFormat } from "@devplat/git-protocol";
import type { Ref } from "@devplat/git-store";
import type {
  RetainedRef,
  StagedPack,
  StagingFolder,
  StorageChange,
  StoredRepository,
} from "../storage/contract.ts";
import type { JobRunner } from "../threads/job.ts";

/**
 * Packs and refs of a state of the repository that several mirrors share. The shared packs are complete together: they have
 * everything that their objects and the shared refs refer to.
 */
export interface Adoption {
  readonly format: ObjectFormat;
  /** Files of the packs that are not here. */
  readonly folder: StagingFolder;
  /** Oldest first. */
  readonly packs: readonly StagedPack[];
  /** Names of all shared packs. Those that this mirror has replaced by a merged pack need not be here. */
  readonly shared: ReadonlySet<string>;
  /** Names of packs that the shared state does not have any more. They are removed if nothing here needs them. */
  readonly replaced: ReadonlySet<string>;
  /**
   * Merges the refs of the mirror with the shared ones.
   *
   * @param isHere whether an object is in the mirror after the adoption
   */
  readonly refs: (
    before: ReadonlyMap<string, Ref>,
    isHere: (oid: string) => boolean,
  ) => ReadonlyMap<string, Ref>;
  readonly retained: readonly RetainedRef[];
}

/**
 * - `adopted`: the mirror has the shared packs and refs, and its own ones. `removed`: names of packs that were removed, because
 *   the shared state replaced them or has all of their objects.
 * - `incomplete`: the mirror lacks a shared pack whose objects are needed. It is as before.
 */
export type AdoptionResult =
  | { readonly kind: "adopted"; readonly removed: readonly string[] }
  | { readonly kind: "incomplete" };

/** Adopts packs in a change, and commits it. An incomplete adoption is not committed. */
export async function adoptInChange(
  adoption: Adoption,
  repository: StoredRepository,
  change: StorageChange,
  checks: JobRunner,
): Promise<AdoptionResult> {
  const { folder, packs, shared, replaced, retained } = adoption;
  const { objects } = repository;
  const namesHere = (): string[] => objects.packs.map(({ name }) => name);
  const before = namesHere();
  await change.adoptPacks(folder, packs);
  const here = namesHere();
  const isAllHere = shared.difference(new Set(here)).size === 0;
  const complete = isAllHere ? [...shared] : before;
  const without = isAllHere ? here.filter((name) => replaced.has(name) && !shared.has(name)) : [];
  const left = here.filter((name) => !complete.includes(name) && !without.includes(name));
  const report =
    left.length === 0
      ? { isComplete: true, redundant: [] }
      : await checks.run({ kind: "adoption", objects: objects.shared(), complete, without });
  if (!isAllHere && !report.isComplete) return { kind: "incomplete" };
  const redundant = isAllHere ? report.redundant : [];
  const most = [...redundant, ...(report.isComplete ? without : [])];
  for (const removed of [most, redundant]) {
    const isHere = isIn(repository, removed);
    const refs = adoption.refs(change.refs, isHere);
    if (!refs.values().every(({ oid }) => isHere(oid))) continue;
    await change.commit(refs, { removed, retained });
    return { kind: "adopted", removed };
  }
  return { kind: "incomplete" };
}

/** Whether an object is in the packs of a repository that stay. */
function isIn({ objects }: StoredRepository, removed: readonly string[]): (oid: string) => boolean {
  if (removed.length === 0) return (oid) => objects.has(oid);
  const packs = objects.packs.filter(({ name }) => !removed.includes(name));
  return (oid) => {
    const bytes = Buffer.from(oid, "hex");
    return packs.some((pack) => pack.find(bytes) >= 0);
  };
}
