import { Serializer } from "@devplat/base/serializer";
import type { ObjectFormat } from "@devplat/git-protocol";
import type { Ref } from "@devplat/git-store";
import type {
  RepackOptions,
  RepackResult,
  RepairResult,
  RepositoryStorage,
  StorageChange,
  StoredRepository,
} from "../storage/contract.ts";
import type { SeedMaking, StoredSeed } from "../storage/seed.ts";
import type { MirrorThreads } from "../threads/mirror-threads.ts";
import { refsAfter, type Fill } from "./fill.ts";
import type { MirrorChange } from "./mirror-change.ts";
import { MirrorReader, type MirrorFigures } from "./mirror-reader.ts";
import { MirrorSharing } from "./mirror-sharing.ts";
import type { MirrorView } from "./mirror-view.ts";

/** Maximum bytes of a local pack that are read before the thread of low priority indexes them. */
const LOCAL_AHEAD_BYTES = 4 * 1024 * 1024;
/** Threads end after a pack with more objects, which frees their memory. Starting others takes 0.2 s of CPU. */
const LARGE_PACK_OBJECTS = 50_000;

export interface MirrorParts {
  readonly storage: RepositoryStorage;
  readonly threads: Pick<MirrorThreads, "index" | "checks">;
  /** Called with the name of an index file that was damaged. The mirror writes it again. */
  readonly onDamagedIndex: (file: string) => void;
  /** Called after each change. */
  readonly onChanged: (change: MirrorChange) => void;
}

/**
 * Complete local copy of one upstream repository, which other processes may share. Readers see a pack only after
 * its fill: it is indexed, its connectivity is checked, and refs are written.
 */
export class Mirror {
  /** Packs that other mirrors share. */
  readonly sharing: MirrorSharing;
  readonly #parts: MirrorParts;
  readonly #reader: MirrorReader;
  readonly #ended: AbortController;
  /** Fills, adoptions and repairs run one after another. */
  readonly #changes: Serializer;
  /** Fulfils at the end of the fill whose pack is completely on this machine. */
  #finishing: Promise<void> | undefined;

  /**
   * @param reader reads the same storage
   * @param ended ends the reader too
   * @param changes also runs the changes of `sharing`
   */
  constructor(
    parts: MirrorParts,
    reader: MirrorReader,
    ended: AbortController,
    changes: Serializer,
    sharing: MirrorSharing,
  ) {
    this.#changes = changes;
    this.sharing = sharing;
    this.#parts = parts;
    this.#reader = reader;
    this.#ended = ended;
  }

  /**
   * Returns the mirror as it is now. The caller must release the view.
   *
   * @returns undefined if the mirror is empty or has another object format
   * @throws GitStoreError, JobFailure, a system error if the stored data is damaged
   */
  async view(format: ObjectFormat): Promise<MirrorView | undefined> {
    const view = await this.#reader.view(format);
    this.#replaceDamagedIndexes();
    return view;
  }

  /**
   * {@link view} for a request. Opening may take a read of the whole repository; a request waits a quarter of a second.
   *
   * @param onLateFailure called with the error if opening fails later
   * @returns undefined also if the repository is not open in time
   * @throws as {@link view}
   */
  async viewSoon(
    format: ObjectFormat,
    onLateFailure: (error: unknown) => void,
  ): Promise<MirrorView | undefined> {
    if (!(await this.#reader.isOpenSoon(onLateFailure))) return undefined;
    return await this.view(format);
  }

  /** Whether the mirror holds objects but is not open. Its next use then opens it, which takes CPU and time. */
  async isClosed(): Promise<boolean> {
    return await this.#reader.isClosed();
  }

  /** Whether the mirror holds nothing: it was not filled yet. Opens nothing. */
  async isEmpty(): Promise<boolean> {
    return await this.#reader.isEmpty();
  }

  /** Packs and their bytes, as of its last use. Undefined: it was not used yet. */
  get figures(): MirrorFigures | undefined {
    return this.#reader.figures;
  }

  /** The last part of a fill, indexing and checks, once its pack is completely on this machine. Never rejects. Undefined: none. */
  get finishing(): Promise<void> | undefined {
    return this.#finishing;
  }

  /**
   * Receives one pack: a fill. One at a time.
   *
   * @throws GitStoreError, JobFailure, a system error, an error of `open` or the pack. The mirror is then as before.
   */
  async receive(fill: Fill): Promise<void> {
    using _ = this.#reader.keepOpen();
    const over = Promise.withResolvers<void>();
    const arrived = (): void => void (this.#finishing = over.promise);
    try {
      await this.#changes.run(() => this.#fill(fill, arrived));
    } finally {
      if (this.#finishing === over.promise) this.#finishing = undefined;
      over.resolve();
    }
  }

  /**
   * Merges packs if that is worth it, and drops objects that the upstream dropped long ago. Serving and filling go on.
   *
   * @throws GitStoreError, JobFailure, a system error. The mirror is then as before.
   */
  async repack(options: Omit<RepackOptions, "signal">): Promise<RepackResult> {
    const repository = await this.#reader.current();
    if (repository === undefined) return { merged: 0, dropped: 0, pack: undefined, replaced: [] };
    using _ = this.#reader.keepOpen();
    const result = await repository.repack({ ...options, signal: this.#ended.signal });
    if (result.merged > 0) await this.#reader.current();
    if (result.pack !== undefined) this.#parts.onChanged({ kind: "repacked", result });
    return result;
  }

  /**
   * Makes a seed if the last one lacks enough objects. Serving and filling go on.
   *
   * @returns undefined if none was made
   * @throws GitStoreError, JobFailure, a system error. The seeds are then as before.
   */
  async makeSeed(making: Omit<SeedMaking, "signal">): Promise<StoredSeed | undefined> {
    const repository = await this.#reader.current();
    if (repository === undefined) return undefined;
    using _ = this.#reader.keepOpen();
    return await repository.makeSeed({ ...making, signal: this.#ended.signal });
  }

  /** Whether a pack is damaged. Reads all of them. */
  async isDamaged(): Promise<boolean> {
    const repository = await this.#reader.current();
    return repository !== undefined && (await repository.damagedPacks()).length > 0;
  }

  /**
   * Removes damaged packs, and packs whose deltas or commits refer to objects of damaged packs. Fills that wait run first.
   * During the repair the mirror is empty for readers.
   *
   * @returns undefined if nothing was removed one by one: no pack is damaged, or the whole mirror must go
   */
  async repair(): Promise<RepairResult | undefined> {
    this.#reader.pause();
    return await this.#changes.run(async () => {
      try {
        this.#ended.signal.throwIfAborted();
        await this.#reader.reopen();
        return await this.#parts.storage.repair(this.#ended.signal);
      } finally {
        this.#reader.resume();
      }
    });
  }

  /** Closes the files until they are needed again, unless a fill is in progress. */
  rest(): void {
    this.#reader.rest();
  }

  /** Waits until the mirror is open, if it is being opened, and for fills, repairs and new index files. */
  async settled(): Promise<void> {
    await this.#reader.settled();
    await this.#changes.settled();
  }

  /** Ends fills and closes the files. Views stay readable until they are released. */
  close(): void {
    this.#ended.abort(new Error("the data of the repository is being removed"));
    this.#reader.close();
  }

  /** @param arrived called when the whole pack is on this machine */
  async #fill(fill: Fill, arrived: () => void): Promise<void> {
    const { open, format, wants, ifEmpty = false, isLocal = false } = fill;
    const { threads, onChanged } = this.#parts;
    const { signal } = this.#ended;
    signal.throwIfAborted();
    const repository = await this.#reader.forChange(format);
    await using change = await repository.beginChange(signal);
    if (ifEmpty && change.refs.size > 0) return;
    if (wants.length > 0 && wants.every((oid) => repository.objects.has(oid))) {
      await this.#addRefs(repository, change, fill);
      return;
    }
    const pack = thenCall(await open(change.refs), arrived);
    if (isLocal) arrived();
    const maxAheadBytes = isLocal ? LOCAL_AHEAD_BYTES : undefined;
    const indexed = await change.receivePack(pack, { signal, maxAheadBytes });
    // Threads keep memory that they have used: one after another they need less than together.
    const isLarge = indexed.objects > LARGE_PACK_OBJECTS;
    if (isLarge) await threads.index.rest();
    const refs = refsAfter(repository, change.refs, fill);
    await this.#checkConnectivity(repository, indexed.name, wants, refs);
    if (isLarge) await threads.checks.rest();
    signal.throwIfAborted();
    await change.commit(refs);
    await this.#reader.current();
    onChanged({ kind: "filled" });
  }

  /** Writes refs for wants that are here without one: a process was killed during their fill, or a branch was reset to them. */
  async #addRefs(repository: StoredRepository, change: StorageChange, fill: Fill): Promise<void> {
    const named = new Set([...change.refs.values()].map(({ oid }) => oid));
    if (fill.wants.every((oid) => named.has(oid))) return;
    const refs = refsAfter(repository, change.refs, fill);
    await this.#checkConnectivity(repository, undefined, fill.wants, refs);
    await change.commit(refs);
    await this.#reader.current();
    this.#parts.onChanged({ kind: "filled" });
  }

  /** Checks a pack, if there is one, and writes bitmaps of the refs. */
  async #checkConnectivity(
    { objects }: StoredRepository,
    pack: string | undefined,
    wants: readonly string[],
    refs: ReadonlyMap<string, Ref>,
  ): Promise<void> {
    const tips = [...refs.values()].map(({ oid }) => oid);
    await this.#parts.threads.checks.run({
      kind: "connectivity",
      objects: objects.shared(),
      pack,
      wants,
      tips,
    });
  }

  /** Writes the index files again that were damaged, and opens the repository with them. Requests do not wait. */
  #replaceDamagedIndexes(): void {
    const damaged = this.#reader.takeDamagedIndexes();
    if (damaged.length === 0) return;
    for (const file of damaged) this.#parts.onDamagedIndex(file);
    const replace = async (): Promise<void> => {
      const repository = await this.#reader.current();
      if (repository === undefined) return;
      await using change = await repository.beginChange(this.#ended.signal);
      await this.#checkConnectivity(repository, undefined, [], change.refs);
      await this.#reader.reopen();
    };
    this.#changes.run(replace).catch(() => undefined);
  }
}

/** Makes the mirror of one repository. */
export function createMirror(parts: MirrorParts): Mirror {
  const ended = new AbortController();
  const reader = new MirrorReader(parts.storage, ended.signal);
  const changes = new Serializer();
  const { threads, onChanged } = parts;
  const sharing = new MirrorSharing({
    reader,
    changes,
    ended: ended.signal,
    checks: threads.checks,
    onChanged,
  });
  return new Mirror(parts, reader, ended, changes, sharing);
}

async function* thenCall<T>(source: AsyncIterable<T>, ended: () => void): AsyncGenerator<T, void, undefined> {
  yield* source;
  ended();
}
