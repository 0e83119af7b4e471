import type { RefSnapshotStore } from "../access/ref-snapshot-store.ts";
import type { RepositoryId } from "../access/repository-id.ts";
import { CachedRepository } from "./cached-repository.ts";

/** The state of every repository while the process runs. */
export class RepositoryRegistry {
  readonly #refs: RefSnapshotStore;
  readonly #repositories = new Map<string, CachedRepository>();

  constructor(refs: RefSnapshotStore) {
    this.#refs = refs;
  }

  of(id: RepositoryId): CachedRepository {
    const known = this.#repositories.get(id.key);
    if (known !== undefined) return known;
    const repository = new CachedRepository(id, this.#refs.of(id));
    this.#repositories.set(id.key, repository);
    return repository;
  }

  /** Repositories that were used since the start. */
  all(): Iterable<CachedRepository> {
    return this.#repositories.values();
  }

  /** Forgets a repository that is not listed any more. */
  forget(id: RepositoryId): void {
    this.#repositories.delete(id.key);
    this.#refs.forget(id);
  }
}
