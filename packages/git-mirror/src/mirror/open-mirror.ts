import { ReachabilityIndex, type Ref } from "@devplat/git-store";
import type { RepositoryStorage, StoredRepository } from "../storage/contract.ts";
import type { MirrorView } from "./mirror-view.ts";

/** Maximum number of reads of a repository that other processes change all the time. */
const MAX_REFRESHES = 5;

/** Memory of one open repository in bytes, for reads of packs by the thread that serves. Verbatim copies need none. */
const GRAPH_MEMORY = {
  bitmapBytes: 32 * 1024 * 1024,
  pageCacheBytes: 16 * 1024 * 1024,
  baseCacheBytes: 16 * 1024 * 1024,
};

/** An open repository, its graph, and its refs. */
export class OpenMirror {
  readonly repository: StoredRepository;
  readonly incarnation: string;
  readonly #index: ReachabilityIndex;
  /** Commit whose refs were read. Undefined: none. */
  #commit: string | undefined;
  #refs: ReadonlyMap<string, Ref> = new Map();

  private constructor(repository: StoredRepository, incarnation: string, index: ReachabilityIndex) {
    this.repository = repository;
    this.incarnation = incarnation;
    this.#index = index;
  }

  /** Takes over the repository: it is closed after a failure, too. */
  static async of(
    repository: StoredRepository,
    incarnation: string,
    signal: AbortSignal,
  ): Promise<OpenMirror> {
    try {
      const index = await ReachabilityIndex.openInSlices(repository.objects, GRAPH_MEMORY, signal);
      return new OpenMirror(repository, incarnation, index);
    } catch (error) {
      repository.close();
      throw error;
    }
  }

  get commit(): string | undefined {
    return this.#commit;
  }

  /** The caller must release the view. */
  view(): MirrorView {
    const graph = this.#index.acquire();
    return { graph, refs: this.#refs, release: () => graph.release() };
  }

  /** Reads the objects and refs of the latest commit. @returns false if the repository was removed since */
  async refresh(storage: RepositoryStorage, commit: string, signal: AbortSignal): Promise<boolean> {
    let latest: string | undefined = commit;
    for (let tries = 1; ; tries++) {
      // Refs first: another process stores objects before it names them.
      const refs = await this.repository.refs();
      this.repository.objects.refresh();
      await this.#index.refreshInSlices(signal);
      const now = await storage.version();
      // The refs may belong to a removed repository, and the objects to the next one in its place.
      if (now?.incarnation !== this.incarnation) return false;
      this.#refs = refs;
      this.#commit = now.commit;
      // Between the two reads a repack may have dropped objects of the refs. Both must belong to one commit.
      if (now.commit === latest || tries === MAX_REFRESHES) return true;
      latest = now.commit;
    }
  }

  /** Quarantines damaged index files. They only save time. @returns whether there were any, and their names */
  async quarantineIndexes(): Promise<string[]> {
    const graph = this.#index.acquire();
    const damaged = [
      ...graph.damagedFiles,
      ...this.repository.objects.packs.map(({ order }) => order.damagedFile),
    ];
    graph.release();
    return await this.repository.quarantineIndexes(damaged.filter((file) => file !== undefined));
  }

  close(): void {
    this.#index.close();
    this.repository.close();
  }
}
