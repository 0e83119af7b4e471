import type { ObjectGraph } from "../reachability/object-graph.ts";
import { ReachabilityIndex } from "../reachability/reachability-index.ts";
import type { Ref } from "../repository/packed-refs.ts";
import type { Repository } from "../repository/repository.ts";

/** A repository and the graph of its packs, which follows changes that other programs make. */
export class ServedRepository {
  static readonly #known = new WeakMap<Repository, ServedRepository>();

  readonly #repository: Repository;
  #index: Promise<ReachabilityIndex> | undefined;
  #refreshing: Promise<void> | undefined;
  #covering: Promise<unknown> | undefined;
  /** The refs whose tips have bitmaps. */
  #covered: ReadonlyMap<string, Ref> | undefined;

  private constructor(repository: Repository) {
    this.#repository = repository;
  }

  static of(repository: Repository): ServedRepository {
    let served = ServedRepository.#known.get(repository);
    if (served === undefined) {
      served = new ServedRepository(repository);
      ServedRepository.#known.set(repository, served);
    }
    return served;
  }

  /**
   * Returns the graph of the packs that are there now. The caller must release it.
   *
   * @throws {GitStoreError} for a corrupt pack
   */
  async graph(refs: ReadonlyMap<string, Ref>): Promise<ObjectGraph> {
    this.#repository.objects.refresh();
    const index = await this.#opened();
    await (this.#refreshing ??= index.refreshInSlices().finally(() => (this.#refreshing = undefined)));
    this.#coverBehind(index, refs);
    return index.acquire();
  }

  async #opened(): Promise<ReachabilityIndex> {
    this.#index ??= ReachabilityIndex.openInSlices(this.#repository.objects);
    try {
      return await this.#index;
    } catch (error) {
      // The next request tries again.
      this.#index = undefined;
      throw error;
    }
  }

  /** Computes bitmaps for new tips while requests are served. Without them, a request walks the history itself. */
  #coverBehind(index: ReachabilityIndex, refs: ReadonlyMap<string, Ref>): void {
    if (this.#covering !== undefined || (this.#covered !== undefined && hasSameTips(this.#covered, refs)))
      return;
    this.#covered = refs;
    const tips = [...refs.values()].map(({ oid }) => oid);
    this.#covering = index
      .cover(tips, { history: true })
      // A walk that fails here fails in the request, too, which tells its caller.
      .catch(() => undefined)
      .finally(() => (this.#covering = undefined));
  }
}

function hasSameTips(one: ReadonlyMap<string, Ref>, other: ReadonlyMap<string, Ref>): boolean {
  if (one.size !== other.size) return false;
  for (const [name, { oid }] of one) if (other.get(name)?.oid !== oid) return false;
  return true;
}
