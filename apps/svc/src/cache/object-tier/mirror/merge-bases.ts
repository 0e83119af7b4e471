import { BoundedMap } from "@devplat/base/bounded-map";
import type { Ref } from "@devplat/git-store";
import type { RepositoryId } from "../../../access/repository-id.ts";

/** Most refs of all bases: about 100 MB. */
const MAX_REFS = 500_000;

/**
 * Refs of the manifests that mirrors had adopted, or that were written with their refs: those of the repositories that were
 * used last. Without a base a merge takes the value of the manifest where both sides have changed, see mergeSharedRefs.
 */
export class MergeBases {
  readonly #bases: BoundedMap<string, ReadonlyMap<string, Ref>>;

  constructor(maxRefs = MAX_REFS) {
    this.#bases = new BoundedMap({ max: maxRefs, sizeOf: (refs) => refs.size + 1 });
  }

  of({ key }: RepositoryId): ReadonlyMap<string, Ref> | undefined {
    return this.#bases.get(key);
  }

  set({ key }: RepositoryId, refs: readonly Ref[]): void {
    this.#bases.set(key, new Map(refs.map((ref) => [ref.name, ref])));
  }

  forget({ key }: RepositoryId): void {
    this.#bases.delete(key);
  }
}
