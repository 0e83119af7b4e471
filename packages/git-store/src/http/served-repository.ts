import { GitStoreError } from "../errors.ts";
import type { ObjectGraph } from "../reachability/object-graph.ts";
import { ReachabilityIndex } from "../reachability/reachability-index.ts";
import type { Ref } from "../repository/packed-refs.ts";
import type { Repository } from "../repository/repository.ts";

/** A repository and the graph of its objects, which follows changes that other programs make. */
export class ServedRepository {
  static readonly #known = new WeakMap<Repository, ServedRepository>();

  readonly #repository: Repository;
  #index: Promise<ReachabilityIndex> | undefined;
  #refreshing: Promise<void> | undefined;
  #covering: Promise<unknown> | undefined;
  /** The refs whose tips have bitmaps, and the graph that has these. */
  #covered: { readonly refs: ReadonlyMap<string, Ref>; readonly graph: WeakRef<ObjectGraph> } | undefined;
  #isClosed = false;

  private constructor(repository: Repository) {
    this.#repository = repository;
    repository.onClose(() => this.#close());
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
   * Returns the graph of the objects that are there now. The caller must release it.
   *
   * @throws {GitStoreError} for a corrupt pack; `not_a_repository` if the repository was closed
   */
  async graph(refs: ReadonlyMap<string, Ref>): Promise<ObjectGraph> {
    this.#checkOpen();
    this.#repository.objects.refresh();
    const index = await this.#opened();
    await (this.#refreshing ??= index.refreshInSlices().finally(() => (this.#refreshing = undefined)));
    this.#checkOpen();
    const graph = index.acquire();
    this.#coverBehind(index, graph, refs);
    return graph;
  }

  #checkOpen(): void {
    if (!this.#isClosed) return;
    const { path } = this.#repository;
    throw new GitStoreError("not_a_repository", `serve ${path}: the repository was closed`, { path });
  }

  /** Closes the packs of the graph, after the last response that reads them. */
  #close(): void {
    this.#isClosed = true;
    // An index that cannot be opened has closed its packs itself.
    const refreshing = this.#refreshing?.catch(() => undefined);
    void this.#index
      ?.then(async (index) => refreshing?.then(() => index.close()) ?? index.close())
      .catch(() => undefined);
    this.#index = undefined;
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
  #coverBehind(index: ReachabilityIndex, graph: ObjectGraph, refs: ReadonlyMap<string, Ref>): void {
    if (this.#covering !== undefined) return;
    const before = this.#covered;
    // A graph that replaced another one has only the bitmaps of files.
    if (before?.graph.deref() === graph && hasSameTips(before.refs, refs)) return;
    this.#covered = { refs, graph: new WeakRef(graph) };
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
