import type { IndexedPack, Lock, Ref, Repository } from "@devplat/git-store";
import type {
  CommitOptions,
  ReceiveOptions,
  StagedPack,
  StagingFolder,
  StorageChange,
  StorageSnapshot,
} from "../storage/contract.ts";
import { oidsToRetain } from "../storage/refs.ts";
import { PacksKnownSound } from "./packs-known-sound.ts";
import type { FillJournal } from "./fill-journal.ts";
import type { FileRepositoryParts } from "./parts.ts";
import { RetainedRefs } from "./retained-refs.ts";

export interface FileChangeParts extends FileRepositoryParts {
  readonly repository: Repository;
  /** The change releases it. */
  readonly lock: Lock;
  readonly journal: FillJournal;
  readonly refs: ReadonlyMap<string, Ref>;
}

/** A change of a repository in a folder. It holds the fill lock. */
export class FileChange implements StorageChange {
  readonly #parts: FileChangeParts;
  #state: "begun" | "adding" | "committed" = "begun";
  #hasNewGraph = false;

  constructor(parts: FileChangeParts) {
    this.#parts = parts;
  }

  get refs(): ReadonlyMap<string, Ref> {
    return this.#parts.refs;
  }

  async receivePack(pack: AsyncIterable<Uint8Array>, options: ReceiveOptions): Promise<IndexedPack> {
    const { repository, threads, detectCollisions } = this.#parts;
    const { signal, maxAheadBytes } = options;
    await this.#beginAdding();
    return await repository.receivePack(pack, {
      workers: threads.index,
      signal,
      detectCollisions,
      ...(maxAheadBytes === undefined ? {} : { maxAheadBytes }),
    });
  }

  async adoptPacks(folder: StagingFolder, packs: readonly StagedPack[]): Promise<void> {
    if (packs.length === 0) return;
    const { repository } = this.#parts;
    await this.#beginAdding();
    const { adoptPacks } = await import("./adopt-packs.ts");
    this.#hasNewGraph = await adoptPacks(repository.path, folder.path, packs);
    repository.objects.refresh();
  }

  async snapshot(): Promise<StorageSnapshot> {
    const { snapshotOf } = await import("./snapshot.ts");
    return await snapshotOf(this.#parts.repository, this.refs);
  }

  async commit(
    refs: ReadonlyMap<string, Ref>,
    { removed = [], retained = [] }: CommitOptions = {},
  ): Promise<void> {
    const { repository, journal, clock } = this.#parts;
    const isFill = this.#state === "adding";
    const retainedRefs = new RetainedRefs(repository.path);
    await retainedRefs.merge(retained);
    await retainedRefs.add(oidsToRetain(this.refs, refs), clock.now());
    if (this.#hasNewGraph) await this.#checkNewGraph(removed);
    // The journal ends before refs are written: packs that refs name must not be removed. After a crash between the two,
    // the objects have no refs.
    if (isFill) await journal.end();
    await repository.replaceRefs(refs.values());
    this.#state = "committed";
    if (removed.length > 0) await this.#removePacks(removed, refs);
    else if (!isFill) return;
    await new PacksKnownSound(repository.path).recordAll(repository.objects.packs.map(({ name }) => name));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { repository, journal, lock } = this.#parts;
    try {
      if (this.#state === "adding") {
        await journal.undo();
        repository.objects.refresh();
      }
    } finally {
      await lock[Symbol.asyncDispose]();
    }
  }

  /**
   * Removes an adopted commit-graph that names missing commits, which stock git reports. It has all commits of the mirror that
   * wrote it, and another mirror may have dropped some of them since.
   */
  async #checkNewGraph(without: readonly string[]): Promise<void> {
    const { repository, threads } = this.#parts;
    const objects = repository.objects.shared();
    if (await threads.checks.run({ kind: "commit_graph", objects, without })) return;
    await repository.removeCommitGraph();
  }

  async #removePacks(names: readonly string[], refs: ReadonlyMap<string, Ref>): Promise<void> {
    const { repository } = this.#parts;
    // It may name commits of the removed packs, which stock git reports. One that was adopted is checked.
    if (!this.#hasNewGraph) await repository.removeCommitGraph();
    for (const name of names) await repository.removePack(name);
    // Processes that have the repository open read its packs again when this file changes.
    await repository.replaceRefs(refs.values());
  }

  async #beginAdding(): Promise<void> {
    const { repository, journal } = this.#parts;
    await journal.begin(repository.objects.packs.map(({ name }) => name));
    this.#state = "adding";
  }
}
