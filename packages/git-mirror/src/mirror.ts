import { join } from "node:path";
import { systemClock, type Clock } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import type { ObjectFormat } from "@devplat/git-protocol";
import {
  ReachabilityIndex,
  ReachableSet,
  Repository,
  type IndexWorkers,
  type ObjectGraph,
  type Ref,
} from "@devplat/git-store";
import { consolidate, type Consolidated, type ConsolidationOptions } from "./storage/repack.ts";
import { FillJournal } from "./storage/fill-journal.ts";
import { FormerTips } from "./storage/retained-refs.ts";
import { StoreChanged, despiteReplacement } from "./storage/pack-race.ts";
import type { ProofThread } from "./threads/check-thread.ts";
import { formerOids, mergeRefs } from "./storage/mirror-refs.ts";
import { CheckedPacks } from "./storage/checked-packs.ts";
import { StoreOpening } from "./opening.ts";
import { quarantineFile } from "./storage/quarantine.ts";
import { checkStore } from "./storage/integrity-check.ts";
import { DATABASE_MEMORY, openExisting, placeOf, stampOf } from "./storage/open-repository.ts";
import { repair, type Repaired } from "./storage/repair.ts";

/** Milliseconds that a fill waits for one of another process. */
const FILL_LOCK_WAIT_MS = 60_000;
/** Looks at a store that other processes change all the time, before it is taken as it was at the last one. */
const MAX_REFRESHES = 5;
/** Bytes that a local pack is read ahead of the thread that indexes it, whose priority is low. */
const LOCAL_AHEAD_BYTES = 4 * 1024 * 1024;
/** After a pack of more objects than this, threads end that have worked on it; starting others takes 0.2 s of CPU. */
const LARGE_PACK_OBJECTS = 50_000;
/** Memory of one open repository, bytes: what the thread that serves reads of packs beside verbatim copies. */
const GRAPH_MEMORY = {
  bitmapBytes: 32 * 1024 * 1024,
  pageCacheBytes: 16 * 1024 * 1024,
  baseCacheBytes: 16 * 1024 * 1024,
};

/** Names of which the tips can hold all that the code host has: see `Tips.surveyedWithin`. */
export const SURVEYED_PREFIXES: readonly string[] = ["refs/heads/", "refs/tags/"];

/** A repository's objects and refs as they are now. To be released. */
export interface StoreView {
  readonly graph: ObjectGraph;
  /** As recorded at the last fill. */
  readonly refs: ReadonlyMap<string, Ref>;
  release(): void;
}

/** What a fill brings. */
export interface Fill {
  /**
   * Begins with the bytes of the pack, thin or not. Called when its turn has come, and only if a want is missing then.
   *
   * @param refs of the store: what the code host may be told that is here
   */
  readonly open: (refs: ReadonlyMap<string, Ref>) => Promise<AsyncIterable<Uint8Array>>;
  readonly format: ObjectFormat;
  /** Ids that must be there afterwards. */
  readonly wants: readonly string[];
  /** Tips that the code host showed; those whose objects are here become refs. */
  readonly shown: Iterable<Ref>;
  /** Only for a store that is still empty when its turn comes: another process may have been quicker. Default false. */
  readonly ifEmpty?: boolean;
  /** The pack is on this machine: it is read no faster than it is indexed. Default false. */
  readonly isLocal?: boolean;
  /** Prefixes of names of which `shown` holds all that the code host has: others below them are dropped. Default none. */
  readonly covered?: readonly string[];
}

interface Open {
  readonly repository: Repository;
  readonly index: ReachabilityIndex;
  /** See {@link placeOf}. */
  readonly place: string;
  /** What `packed-refs` looked like when the refs were read. */
  stamp: string;
  refs: ReadonlyMap<string, Ref>;
}

export interface RepositoryStoreOptions {
  readonly path: string;
  /** Address of the code host; data from another one is not served. */
  readonly hostUrl: string;
  /** Key of the repository's `config` that holds `hostUrl`. */
  readonly hostKey: string;
  readonly workers: IndexWorkers;
  readonly proofs: Pick<ProofThread, "do" | "rest">;
  /** `cache.detect_sha1_collisions`. Default false. */
  readonly detectCollisions?: boolean;
  /** Removes the folder. */
  readonly discard: () => Promise<void>;
  /** Moves the folder out of the way: it came from another code host. Default: removes it. */
  readonly quarantine?: () => Promise<void>;
  /** Told of an index file that was damaged and is made again. */
  readonly onDamagedIndex?: (path: string) => void;
  readonly clock?: Clock;
  /** Told after each fill that brought something. */
  readonly onFilled?: () => void;
}

/**
 * The objects of one cached repository: a bare repository on disk, shared with other processes, and its graph in
 * memory. A pack counts once its fill is over: indexed, everything that it refers to found, tips recorded as refs.
 */
export class RepositoryStore {
  readonly #options: RepositoryStoreOptions;
  /** Opening, refreshing and filling, one after the other. */
  readonly #turns = new Serializer();
  #open: Open | undefined;
  readonly #fills = new Serializer();
  #filling = 0;
  /** Fulfils when the fill is over whose pack is here. */
  #finishing: Promise<void> | undefined;
  readonly #opening = new StoreOpening(() => this.#turns.run(() => this.#current()));
  /** While it is being mended nobody is served from it. */
  #mending = false;
  readonly #ended = new AbortController();

  constructor(options: RepositoryStoreOptions) {
    this.#options = options;
  }

  /**
   * The repository as it is now; undefined: there is none, or none of this format.
   *
   * @throws what a damaged repository calls for
   */
  async view(format: ObjectFormat): Promise<StoreView | undefined> {
    const open = await this.#turns.run(() => this.#current());
    if (open === undefined || open.repository.format !== format || open.refs.size === 0) return undefined;
    const graph = open.index.acquire();
    return { graph, refs: open.refs, release: () => graph.release() };
  }

  /**
   * {@link view} for a request: while the repository is being opened, which may take reading all of it, a request waits a
   * quarter of a second.
   *
   * @param onLateFailure told what opening failed with after that
   * @returns undefined also if it is not open by then
   * @throws as `view`
   */
  async viewSoon(
    format: ObjectFormat,
    onLateFailure: (error: unknown) => void,
  ): Promise<StoreView | undefined> {
    if (this.#open === undefined && !(await this.#opening.isDoneSoon(onLateFailure))) return undefined;
    return await this.view(format);
  }

  /** Waits until it is open, if somebody has it opened, and until its indexes are made again. */
  async settled(): Promise<void> {
    await this.#opening.settled();
    await this.#fills.settled();
  }

  /** Packs that are open, and their bytes. */
  get figures(): { readonly packs: number; readonly bytes: number } {
    const packs = this.#open?.repository.objects.packs ?? [];
    return { packs: packs.length, bytes: packs.reduce((sum, pack) => sum + pack.size, 0) };
  }

  /**
   * Takes a pack in. One at a time.
   *
   * @throws GitStoreError, ProofFailure, a system error, what `open` or the pack threw. The store is then as before.
   */
  async receive(fill: Fill): Promise<void> {
    this.#filling++;
    const over = Promise.withResolvers<void>();
    const arrived = (): void => void (this.#finishing = over.promise);
    const end = (): void => {
      this.#filling--;
      if (this.#finishing === over.promise) this.#finishing = undefined;
      over.resolve();
    };
    await this.#fills.run(() => this.#fill(fill, arrived).finally(end));
  }

  /** The rest of a fill whose pack is here already: only indexing and checks are left. Never rejects. Undefined: none. */
  get finishing(): Promise<void> | undefined {
    return this.#finishing;
  }

  /**
   * Whether the history that these objects belong to has a commit in common with that of other objects. Ids that are
   * not here are passed over.
   */
  async related(view: StoreView, some: Iterable<string>, others: Iterable<string>): Promise<boolean> {
    const options = { commitsOnly: true, signal: this.#ended.signal };
    const first = await ReachableSet.of(view.graph, some, options);
    return first.sharesCommits(await ReachableSet.of(view.graph, others, options));
  }

  /**
   * Merges packs where that is worth it, and leaves out what upstream dropped long ago. Serving and filling go on.
   *
   * @throws as `consolidate` does; the store is then as before
   */
  async consolidate(options: Omit<ConsolidationOptions, "signal" | "now">): Promise<Consolidated> {
    const open = await this.#turns.run(() => this.#current());
    if (open === undefined) return { merged: 0, dropped: 0 };
    this.#filling++;
    try {
      const now = (this.#options.clock ?? systemClock).now();
      const done = await consolidate(open.repository, { ...options, now, signal: this.#ended.signal });
      if (done.merged > 0) {
        await this.#turns.run(() => this.#current());
        await this.#noteSound(open.repository);
      }
      return done;
    } finally {
      this.#filling--;
    }
  }

  /**
   * Takes damaged packs out, and what counts on them; what is left is served again afterwards. After the fills that are
   * under way.
   *
   * @returns undefined when nothing is left, or no pack is to blame
   * @throws a system error; any error of opening it
   */
  async repair(thread: Pick<ProofThread, "do">): Promise<Repaired | undefined> {
    this.#mending = true;
    return await this.#fills.run(() => this.#repair(thread).finally(() => (this.#mending = false)));
  }

  /** Closes the files until they are needed again, unless a fill is under way. */
  rest(): void {
    void this.#turns.run(() => {
      if (this.#filling === 0) this.#close();
    });
  }

  /** Ends fills and closes the files. Views that were given stay good until they are released. */
  close(): void {
    this.#ended.abort(new Error("the repository's data is being removed"));
    this.#close();
  }

  /** @param arrived called when the whole pack is on this machine */
  async #fill(fill: Fill, arrived: () => void): Promise<void> {
    const { open, format, wants, ifEmpty = false, isLocal = false } = fill;
    const { signal } = this.#ended;
    signal.throwIfAborted();
    const repository = await this.#turns.run(() => this.#forFill(format));
    await using held = new AsyncDisposableStack();
    held.use(await repository.lock("fill", { waitMs: FILL_LOCK_WAIT_MS, signal }));
    const journal = new FillJournal(repository.path);
    await journal.undo();
    repository.objects.refresh();
    const refsBefore = await repository.refs();
    if (ifEmpty && refsBefore.size > 0) return;
    if (wants.length > 0 && wants.every((oid) => repository.objects.has(oid))) {
      // What is here is proven. It has no name where a process was killed in between, or a branch was set back to it.
      const named = new Set([...refsBefore.values()].map(({ oid }) => oid));
      if (wants.every((oid) => named.has(oid))) return;
      const refs = refsAfter(repository, refsBefore, fill);
      await this.#connect(repository, undefined, wants, refs);
      await this.#keepFormer(repository, refsBefore, refs);
      await repository.replaceRefs(refs.values());
      await this.#turns.run(() => this.#current());
      return;
    }
    const pack = untilEnd(await open(refsBefore), arrived);
    if (isLocal) arrived();
    await journal.begin(repository.objects.packs.map(({ name }) => name));
    try {
      const { workers, detectCollisions = false } = this.#options;
      const maxAhead = isLocal ? { maxAheadBytes: LOCAL_AHEAD_BYTES } : {};
      const options = { workers, signal, detectCollisions, ...maxAhead };
      const indexed = await repository.receivePack(pack, options);
      // Threads keep what they have used: one after the other they need less than side by side.
      const isLarge = indexed.objects > LARGE_PACK_OBJECTS;
      if (isLarge) await this.#options.workers.rest();
      const refs = refsAfter(repository, refsBefore, fill);
      await this.#connect(repository, indexed.name, wants, refs);
      if (isLarge) await this.#options.proofs.rest();
      signal.throwIfAborted();
      await this.#keepFormer(repository, refsBefore, refs);
      // Before the refs: what they name must not be taken out any more. A crash in between leaves objects without a name.
      await journal.end();
      await repository.replaceRefs(refs.values());
    } catch (error) {
      await journal.undo();
      repository.objects.refresh();
      throw error;
    }
    await this.#noteSound(repository);
    await this.#turns.run(() => this.#current());
    this.#options.onFilled?.();
  }

  /** What this process wrote was hashed on its way: the next start need not read it again. */
  async #noteSound({ path, objects }: Repository): Promise<void> {
    const names = objects.packs.map(({ name }) => name);
    const known = new CheckedPacks(path);
    await known.note(names, await known.unchecked(names));
  }

  /** Proves a pack, if one came, and makes the bitmaps of the tips. */
  async #connect(
    repository: Repository,
    pack: string | undefined,
    wants: readonly string[],
    refs: ReadonlyMap<string, Ref>,
  ): Promise<void> {
    const tips = [...refs.values()].map(({ oid }) => oid);
    const objects = repository.objects.shared();
    await this.#options.proofs.do({ kind: "connect", objects, pack, wants, tips });
  }

  /** What loses its name stays for a while. */
  async #keepFormer(
    repository: Repository,
    before: ReadonlyMap<string, Ref>,
    after: ReadonlyMap<string, Ref>,
  ): Promise<void> {
    const now = (this.#options.clock ?? systemClock).now();
    await new FormerTips(repository.path).add(formerOids(before, after), now);
  }

  async #repair(thread: Pick<ProofThread, "do">): Promise<Repaired | undefined> {
    const { signal } = this.#ended;
    signal.throwIfAborted();
    await this.#turns.run(() => this.#close());
    const repository = await Repository.open(this.#options.path, { ...DATABASE_MEMORY, skipFaulty: true });
    try {
      await using held = new AsyncDisposableStack();
      held.use(await repository.lock("fill", { waitMs: FILL_LOCK_WAIT_MS, signal }));
      await new FillJournal(repository.path).undo();
      repository.objects.refresh();
      return await repair(repository, thread, (this.#options.clock ?? systemClock).now());
    } finally {
      repository.close();
    }
  }

  /** The repository, made if it is not there. One of another format, or from elsewhere, makes room. */
  async #forFill(format: ObjectFormat): Promise<Repository> {
    const open = await this.#current(true);
    if (open?.repository.format === format) return open.repository;
    if (open !== undefined) await this.#discard();
    const { path, hostUrl, hostKey } = this.#options;
    const repository = await Repository.init(path, {
      ...DATABASE_MEMORY,
      format,
      config: { [hostKey]: hostUrl },
    });
    return (await this.#take(repository, await placeOf(path))).repository;
  }

  /** Opens it, or looks whether a fill, here or in another process, changed it. @param empty also without refs */
  async #current(empty = false): Promise<Open | undefined> {
    return await despiteReplacement(() => this.#look(empty));
  }

  async #look(empty: boolean): Promise<Open | undefined> {
    const { path, hostUrl, hostKey } = this.#options;
    if (this.#mending) return undefined;
    const place = await placeOf(path);
    // Another process removed it, and may have made a new one.
    if (this.#open !== undefined && this.#open.place !== place) this.#close();
    const packedRefs = join(path, "packed-refs");
    const stamp = await stampOf(packedRefs);
    if (place === "" || (stamp === "" && !empty)) return undefined;
    if (this.#open === undefined) {
      const repository = await openExisting(path);
      if (repository === undefined) return undefined;
      if (repository.config(hostKey) !== hostUrl) {
        repository.close();
        await (this.#options.quarantine ?? this.#options.discard)();
        return undefined;
      }
      try {
        await checkStore(repository, this.#options.proofs, this.#ended.signal);
      } catch (error) {
        repository.close();
        const isSame = (await placeOf(path)) === place && (await stampOf(packedRefs)) === stamp;
        throw isSame ? error : new StoreChanged(error);
      }
      // As it was before it was opened: one that came in between is noticed below.
      await this.#setDamagedIndexesAside(await this.#take(repository, place));
    }
    const open = this.#open;
    if (open === undefined || open.stamp === stamp || (await this.#refresh(open, stamp))) return open;
    this.#close();
    return await this.#look(empty);
  }

  /** Takes up what was filled, here or in another process. @returns false: the store was removed meanwhile */
  async #refresh(open: Open, stamp: string): Promise<boolean> {
    const { path } = this.#options;
    const packedRefs = join(path, "packed-refs");
    for (let tries = 1; ; tries++) {
      // Refs first: what another process has named by now, it had stored before.
      const refs = await open.repository.refs();
      open.repository.objects.refresh();
      await open.index.refreshInSlices(this.#ended.signal);
      // The refs may be those of the store that was removed, and the objects those of the new one in its place.
      if ((await placeOf(path)) !== open.place) return false;
      const now = await stampOf(packedRefs);
      open.refs = refs;
      open.stamp = stamp;
      // What the refs named may have been let go of before the objects were looked at: refs and objects of one moment.
      if (now === stamp || tries === MAX_REFRESHES) return true;
      stamp = now;
    }
  }

  /** Indexes beside the packs only save time: those that are damaged go, and are made again behind the requests. */
  async #setDamagedIndexesAside({ repository, index }: Open): Promise<void> {
    const graph = index.acquire();
    const damaged = [
      ...graph.damagedFiles,
      ...repository.objects.packs.map(({ order }) => order.damagedFile),
    ];
    graph.release();
    let found = false;
    for (const path of damaged) {
      if (path === undefined || !(await quarantineFile(repository.path, path))) continue;
      found = true;
      this.#options.onDamagedIndex?.(path);
    }
    if (!found) return;
    this.#fills.run(() => this.#makeIndexes(repository)).catch(() => undefined);
  }

  /** Makes the indexes that are missing, and opens the repository again with them. */
  async #makeIndexes(repository: Repository): Promise<void> {
    const { signal } = this.#ended;
    await using held = new AsyncDisposableStack();
    held.use(await repository.lock("fill", { waitMs: FILL_LOCK_WAIT_MS, signal }));
    await this.#connect(repository, undefined, [], await repository.refs());
    await this.#turns.run(() => {
      if (this.#open?.repository === repository) this.#close();
    });
  }

  async #take(repository: Repository, place: string): Promise<Open> {
    try {
      const index = await ReachabilityIndex.openInSlices(
        repository.objects,
        GRAPH_MEMORY,
        this.#ended.signal,
      );
      this.#open = { repository, index, place, stamp: "", refs: new Map() };
      return this.#open;
    } catch (error) {
      repository.close();
      throw error;
    }
  }

  async #discard(): Promise<void> {
    this.#close();
    await this.#options.discard();
  }

  #close(): void {
    this.#open?.index.close();
    this.#open?.repository.close();
    this.#open = undefined;
  }
}

/** The refs of a repository after a fill: those shown whose objects are here, and those that the code host may still have. */
function refsAfter(
  repository: Repository,
  before: ReadonlyMap<string, Ref>,
  { shown, covered = [], wants }: Fill,
): Map<string, Ref> {
  const all = [...shown];
  const here = all.filter(({ oid }) => repository.objects.has(oid));
  const names = new Set(all.map(({ name }) => name));
  const gone = (name: string): boolean =>
    !names.has(name) && covered.some((prefix) => name.startsWith(prefix));
  return mergeRefs(before, here, wants, gone);
}

async function* untilEnd<T>(source: AsyncIterable<T>, ended: () => void): AsyncGenerator<T, void, undefined> {
  yield* source;
  ended();
}
