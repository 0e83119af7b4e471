import type { IndexedPack, Lock, Ref, Repository } from "@devplat/git-store";
import type { ReceiveOptions, StorageChange } from "../storage/contract.ts";
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
  #state: "begun" | "receiving" | "committed" = "begun";

  constructor(parts: FileChangeParts) {
    this.#parts = parts;
  }

  get refs(): ReadonlyMap<string, Ref> {
    return this.#parts.refs;
  }

  async receivePack(pack: AsyncIterable<Uint8Array>, options: ReceiveOptions): Promise<IndexedPack> {
    const { repository, journal, threads, detectCollisions } = this.#parts;
    const { signal, maxAheadBytes } = options;
    await journal.begin(repository.objects.packs.map(({ name }) => name));
    this.#state = "receiving";
    return await repository.receivePack(pack, {
      workers: threads.index,
      signal,
      detectCollisions,
      ...(maxAheadBytes === undefined ? {} : { maxAheadBytes }),
    });
  }

  async commit(refs: ReadonlyMap<string, Ref>): Promise<void> {
    const { repository, journal, clock } = this.#parts;
    const isFill = this.#state === "receiving";
    await new RetainedRefs(repository.path).add(oidsToRetain(this.refs, refs), clock.now());
    // The journal ends before refs are written: packs that refs name must not be removed. After a crash between the two,
    // the objects have no refs.
    if (isFill) await journal.end();
    await repository.replaceRefs(refs.values());
    this.#state = "committed";
    if (!isFill) return;
    await new PacksKnownSound(repository.path).recordAll(repository.objects.packs.map(({ name }) => name));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { repository, journal, lock } = this.#parts;
    try {
      if (this.#state === "receiving") {
        await journal.undo();
        repository.objects.refresh();
      }
    } finally {
      await lock[Symbol.asyncDispose]();
    }
  }
}
