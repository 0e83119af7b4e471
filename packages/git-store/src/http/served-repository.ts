import type { ObjectGraph } from "../reachability/object-graph.ts";
import { ReachabilityIndex } from "../reachability/reachability-index.ts";
import type { Oid } from "../oid.ts";
import type { Ref } from "../repository/packed-refs.ts";
import type { Head, Repository } from "../repository/repository.ts";

/** The refs of a repository at one moment. */
export interface RefsNow {
  readonly refs: ReadonlyMap<string, Ref>;
  readonly head: Head;
}

/** A repository and the graph of its packs, which follows changes that other programs make. */
export class ServedRepository {
  static readonly #known = new WeakMap<Repository, ServedRepository>();

  readonly repository: Repository;
  #index: Promise<ReachabilityIndex> | undefined;
  #refreshing: Promise<void> | undefined;
  #covering: Promise<unknown> | undefined;
  /** The packs and tips that have bitmaps, as text. */
  #covered = "";

  private constructor(repository: Repository) {
    this.repository = repository;
  }

  static of(repository: Repository): ServedRepository {
    let served = ServedRepository.#known.get(repository);
    if (served === undefined) {
      served = new ServedRepository(repository);
      ServedRepository.#known.set(repository, served);
    }
    return served;
  }

  async refsNow(): Promise<RefsNow> {
    const [refs, head] = await Promise.all([this.repository.refs(), this.repository.head()]);
    return { refs, head };
  }

  /**
   * Returns the graph of the packs that are there now. The caller must release it.
   *
   * @throws {GitStoreError} for a corrupt pack
   */
  async graph(refs: ReadonlyMap<string, Ref>): Promise<ObjectGraph> {
    this.repository.objects.refresh();
    const index = await this.#opened();
    await (this.#refreshing ??= index.refreshInSlices().finally(() => (this.#refreshing = undefined)));
    this.#coverBehind(
      index,
      [...refs.values()].map(({ oid }) => oid),
    );
    return index.acquire();
  }

  async #opened(): Promise<ReachabilityIndex> {
    this.#index ??= ReachabilityIndex.openInSlices(this.repository.objects);
    try {
      return await this.#index;
    } catch (error) {
      // The next request tries again.
      this.#index = undefined;
      throw error;
    }
  }

  /** Computes bitmaps for new tips while requests are served. Without them, a request walks the history itself. */
  #coverBehind(index: ReachabilityIndex, tips: readonly Oid[]): void {
    const state = JSON.stringify([
      this.repository.objects.packs.map(({ name }) => name),
      [...tips].toSorted(),
    ]);
    if (this.#covering !== undefined || state === this.#covered) return;
    this.#covered = state;
    this.#covering = index
      .cover(tips, { history: true })
      // A walk that fails here fails in the request, too, which tells its caller.
      .catch(() => undefined)
      .finally(() => (this.#covering = undefined));
  }
}
