import { systemClock, systemCode, type Clock } from "@devplat/base";
import type { FetchRequest, ObjectFormat } from "@devplat/git-protocol";
import { GIT_STORE_ERROR_CODES } from "@devplat/git-store";
import { AnswerBroke, AskFailed, BaseFetches, type BaseFetch } from "./coalescing/base-fetch.ts";
import { BackgroundFills, type BackgroundFillOptions } from "./filling/background-fill.ts";
import type { CachedRepository } from "./cached-repository.ts";
import type { FaultLog } from "./fault-log.ts";
import { FillBehind, type FillSource } from "./filling/fill-behind.ts";
import { FillStarts } from "./filling/fill-starts.ts";
import type { FetchJob } from "./fetch-plan.ts";
import type { Flight } from "./coalescing/flight.ts";
import {
  IdleDetector,
  OwnAnswers,
  type OwnRequest,
  type OwnVerdict,
  PackStores,
  type RepositoryStore,
  begin,
  isDamage,
} from "@devplat/git-mirror";
import { within } from "./coalescing/keep-alive.ts";
import { BRAND } from "../brand.ts";
import { StoredDataDamaged } from "./responses/block-sums.ts";
import { RESPONSES_FOLDER } from "./responses/response-files.ts";
import { fileChunks, flightChunks, packBytes } from "./coalescing/pack-stream.ts";
import type { ObjectLookup } from "../access/authorization.ts";
import { isStorable, repositoryId, type RepositoryId } from "../access/repository-id.ts";
import type { UpstreamAnswer } from "../upstream/upstream.ts";
import type { RepositoryRegistry } from "./repository-registry.ts";
import type { UpstreamSlots } from "./coalescing/slots.ts";

/** Milliseconds in which the code host must begin to give what a mirror lacks; then the request itself is forwarded. */
const FIRST_BYTE_MS = 5000;
/** Milliseconds that a request waits for a fill whose pack is here; then it is forwarded. */
const FINISHING_MS = 5000;

/**
 * What the store makes of a request in the end.
 * - `begun`: an answer whose first chunk is made, or, with `keptAlive`, keepalive packets until it is; `asked`: with
 *   objects that the code host gave for it.
 * - `none`: the code host is to be asked; `failed`: and the store does not work.
 * - `relay`: the code host's answer, which is no fetch answer.
 * - `unrelated`: what the code host has now shares no history with the store, which must be set aside.
 * - `busy`: no turn came in time.
 */
export type SettledAnswer =
  | {
      readonly kind: "begun";
      readonly chunks: AsyncIterable<Buffer>;
      readonly asked: boolean;
      readonly keptAlive?: true;
    }
  | { readonly kind: "relay"; readonly answer: UpstreamAnswer }
  | { readonly kind: "none" | "failed" | "unrelated" | "busy" };

/** The same, or `pending` while the code host is asked; `leads`: on behalf of this request. */
export type OwnAnswer =
  | SettledAnswer
  | { readonly kind: "pending"; readonly leads: boolean; readonly pending: Promise<SettledAnswer> };

export interface StoredObjectsOptions {
  readonly storagePath: string;
  readonly hostUrl: string;
  readonly fill: BackgroundFillOptions;
  /** Milliseconds without a request before a repository's packs are merged. Default 0. */
  readonly repackIdleMs?: number | undefined;
  /** Default {@link FIRST_BYTE_MS}. */
  readonly firstByteMs?: number | undefined;
  /** `cache.prune_unreachable_after`, in milliseconds. Default: never. */
  readonly pruneAfterMs?: number | undefined;
  /** Sets everything aside that is stored of a repository, because the name stands for another one now. */
  readonly startAnew: (repository: CachedRepository) => Promise<void>;
  /** Default false. */
  readonly detectCollisions?: boolean | undefined;
  readonly clock?: Clock;
  readonly repositories: RepositoryRegistry;
}

/**
 * The object stores as the cache uses them: answers made from them, answers that fill them. Nothing in here throws; a
 * store that does not work is logged, a damaged one set aside, and the code host answers instead.
 */
export class StoredObjects implements ObjectLookup {
  readonly #stores: PackStores;
  readonly #own: OwnAnswers<CachedRepository>;
  readonly #base: BaseFetches;
  readonly #background: BackgroundFills;
  readonly #faults: FaultLog;
  readonly #repositories: RepositoryRegistry;
  readonly #idle: IdleDetector;
  readonly #firstByteMs: number;
  readonly #startAnew: StoredObjectsOptions["startAnew"];
  readonly #starts = new FillStarts();
  /** Fills whose packs were here when they started, by repository. */
  readonly #finishing = new Map<string, Promise<void>>();
  readonly #ended = new AbortController();

  constructor(options: StoredObjectsOptions, slots: UpstreamSlots, faults: FaultLog) {
    const { storagePath, hostUrl, fill, pruneAfterMs = Infinity, clock = systemClock } = options;
    const { repackIdleMs: idleMs = 0, firstByteMs = FIRST_BYTE_MS, detectCollisions = false } = options;
    this.#idle = new IdleDetector({ clock, idleMs });
    this.#firstByteMs = firstByteMs;
    this.#repositories = options.repositories;
    this.#startAnew = options.startAnew;
    this.#stores = new PackStores({
      storagePath,
      otherFolders: [RESPONSES_FOLDER],
      hostUrl,
      hostKey: `${BRAND.command}.hosturl`,
      clock,
      idle: this.#idle,
      pruneAfterMs,
      detectCollisions,
      maintenanceFailed: async (key, error) => this.#maintenanceFailed(key, error),
      damagedIndex: (path) => {
        const what = "an index of stored packs is damaged; it is set aside and made again";
        faults.once(undefined, new Error(path), what);
      },
    });
    this.#own = new OwnAnswers(this.#stores, (repository, error) => void this.failed(repository, error));
    this.#base = new BaseFetches(slots);
    this.#background = new BackgroundFills(fill, this.#stores, slots, faults);
    this.#faults = faults;
  }

  /** A request for the repository came: it is not idle. */
  used({ id }: CachedRepository): void {
    this.#idle.touch(id.key);
  }

  async areReachable(id: RepositoryId, format: ObjectFormat, oids: readonly string[]): Promise<boolean> {
    const repository = this.#repositories.of(id);
    try {
      return await this.#own.maySee(repository, format, oids);
    } catch (error) {
      await this.failed(repository, error);
      return false;
    }
  }

  /**
   * An answer from the store, if it can give one; it may have to fetch from the code host what it lacks. What it lacks
   * is decided before the promise fulfils; the fetch itself is the promise in `pending`.
   *
   * @param waitMs for a turn to ask the code host, at most
   * @throws in `pending`: what asking the code host threw
   */
  async answer(job: FetchJob, signal: AbortSignal, waitMs: number): Promise<OwnAnswer> {
    const { repository, fetch, format } = job;
    if (fetch === undefined || !isStorable(repository.id)) return { kind: "none" };
    const request = { repository, fetch, format };
    try {
      const store = this.#stores.of(repository.id);
      let verdict = await this.#own.judge(request);
      if (verdict.kind === "cannot" && (await this.#finished(job))) {
        verdict = await this.#own.judge(request);
      }
      if (verdict.kind === "cannot") return { kind: "none" };
      if (verdict.kind === "serve") return await this.#begin(request, verdict, signal, false);
      const running = this.#base.running(job, verdict);
      const fetching = running ?? this.#base.fetch(job, verdict, store, waitMs);
      const pending = this.#stores.urgency.during(
        this.#afterFetch(job, request, verdict, fetching, running === undefined, signal),
      );
      return { kind: "pending", leads: running === undefined, pending };
    } catch (error) {
      return await this.#noAnswer(repository, error, signal);
    }
  }

  /**
   * Waits for the fill of an empty store whose pack is here, if the tips show what the request wants: then the fill
   * brings it. A fill behind another transfer of the repository starts now.
   *
   * @returns whether there was one, and it is over
   */
  async #finished({ repository, fetch }: FetchJob): Promise<boolean> {
    const { id, tips } = repository;
    const { key } = id;
    // The transfer of a request for all objects is itself the source of a fill.
    if (fetch === undefined || !isSelfContained(fetch)) this.#starts.startOne(key);
    const finishing = this.#finishing.get(key) ?? this.#stores.of(id).finishing;
    if (finishing === undefined || fetch?.wants.every((oid) => tips.isTip(oid)) !== true) return false;
    if (await this.hasAny(repository)) return false;
    const over = finishing.then(() => true);
    return (await this.#stores.urgency.during(within(over, FINISHING_MS))) === true;
  }

  async #begin(
    request: OwnRequest<CachedRepository>,
    verdict: Extract<OwnVerdict, { kind: "serve" }>,
    signal: AbortSignal,
    asked: boolean,
  ): Promise<SettledAnswer> {
    const { chunks } = await begin(this.#own.answer(request, verdict, signal), (error) => {
      if (!signal.aborted) void this.failed(request.repository, error);
      return new StoredDataDamaged("stored objects cannot be read", error);
    });
    return { kind: "begun", chunks, asked };
  }

  /** What can be answered once the objects that were lacking came, or did not. */
  async #afterFetch(
    job: FetchJob,
    request: OwnRequest<CachedRepository>,
    lacks: Extract<OwnVerdict, { kind: "lacks" }>,
    fetching: BaseFetch,
    leads: boolean,
    signal: AbortSignal,
  ): Promise<SettledAnswer> {
    const { repository } = job;
    const { generation } = repository;
    const { identity } = repository.tips;
    try {
      if (!(await this.#hasBegun(fetching))) {
        if (leads) void this.#afterLateFetch(repository, fetching.outcome);
        return { kind: "none" };
      }
      const outcome = await fetching.outcome;
      if (outcome.kind === "busy") return { kind: "busy" };
      // A refusal is for the one whose credential was refused; the others ask for themselves.
      if (outcome.kind === "refused") {
        return leads ? { kind: "relay", answer: outcome.answer } : { kind: "none" };
      }
      if (outcome.kind === "unrelated") return { kind: "unrelated" };
      if (generation !== repository.generation || identity !== repository.tips.identity)
        return { kind: "none" };
      // What another fill had brought was not given to this request.
      const allowed = new Set(outcome.asked ? lacks.wants : []);
      const verdict = await this.#own.judge(request, allowed);
      if (verdict.kind === "serve") return await this.#begin(request, verdict, signal, outcome.asked);
      if (verdict.kind === "lacks") verdict.view.release();
      return { kind: "none" };
    } catch (error) {
      if (error instanceof AskFailed && leads) throw error.cause;
      if (error instanceof AnswerBroke && leads) {
        this.#faults.once(repository, error.cause, "the objects of an answer cannot be stored");
        this.#suspect(repository);
      }
      if (error instanceof AskFailed || error instanceof AnswerBroke) return { kind: "none" };
      return await this.#noAnswer(repository, error, signal);
    } finally {
      lacks.view.release();
    }
  }

  /** Nobody waits for the fetch any more, which goes on for the mirror. Never rejects. */
  async #afterLateFetch(repository: CachedRepository, outcome: BaseFetch["outcome"]): Promise<void> {
    const { generation } = repository;
    try {
      const { kind } = await outcome;
      if (kind === "unrelated" && generation === repository.generation) await this.#startAnew(repository);
    } catch (error) {
      if (generation !== repository.generation || this.#ended.signal.aborted) return;
      this.#faults.once(repository, error, "the objects of an answer cannot be stored");
    }
  }

  /** Whether the code host begins to answer in time, or the fetch is over. */
  async #hasBegun({ outcome, firstByte }: BaseFetch): Promise<boolean> {
    const over = outcome.then(
      () => undefined,
      () => undefined,
    );
    const begun = Promise.race([over, firstByte]).then(() => true);
    return (await within(begun, this.#firstByteMs)) === true;
  }

  async #noAnswer(
    repository: CachedRepository,
    error: unknown,
    signal: AbortSignal,
  ): Promise<{ readonly kind: "none" | "failed" }> {
    if (signal.aborted) return { kind: "none" };
    await this.failed(repository, error);
    return { kind: "failed" };
  }

  /**
   * Prepares the fill of an empty store behind a transfer from the code host: with its own pack, if that is stored and
   * needs nothing else, or with a fetch of its own.
   *
   * @param flight the transfer
   * @param isStored whether it is written to a file
   * @param begun told of the fill when it starts
   * @returns undefined when nothing can be filled behind it
   */
  fillBehind(
    job: FetchJob,
    flight: Flight,
    isStored: boolean,
    begun: (work: Promise<void>) => void,
  ): FillBehind | undefined {
    const { repository, fetch } = job;
    if (fetch === undefined || !isStorable(repository.id)) return undefined;
    const { generation } = repository;
    const { key } = repository.id;
    const behind: FillBehind = new FillBehind({
      flight,
      selfContained: isStored && isSelfContained(fetch),
      fill: async (source) => {
        const work = this.#fill(job, fetch, source, generation);
        if (source?.isHere === true) this.#finishing.set(key, work);
        begun(work);
        await work;
        if (this.#finishing.get(key) === work) this.#finishing.delete(key);
      },
      over: () => this.#starts.remove(key, behind),
    });
    this.#starts.add(key, behind);
    return behind;
  }

  async #fill(job: FetchJob, fetch: FetchRequest, source: FillSource, generation: number): Promise<void> {
    const { repository } = job;
    if (this.#ended.signal.aborted || generation !== repository.generation) {
      if (source?.kind === "transfer") source.reader.leave();
      return;
    }
    this.#idle.touch(repository.id.key);
    if (source === undefined) await this.#background.fill(job);
    else await this.#fillFrom(job, fetch, source);
  }

  async #fillFrom(
    { repository, format }: FetchJob,
    fetch: FetchRequest,
    source: NonNullable<FillSource>,
  ): Promise<void> {
    const { generation } = repository;
    const { kind, isHere: isLocal } = source;
    const chunks =
      kind === "file" ? fileChunks(source.file.fd, source.file.bytes) : flightChunks(source.reader);
    try {
      const store = this.#stores.of(repository.id);
      const view = await store.view(format);
      view?.release();
      if (view !== undefined || generation !== repository.generation) return;
      const tips = repository.tips.recent();
      const open = (): Promise<AsyncIterable<Buffer>> => Promise.resolve(packBytes(chunks));
      const shown = tips.refs.values();
      await store.receive({ open, format, wants: fetch.wants, shown, ifEmpty: true, isLocal });
    } catch (error) {
      // Data that is being removed takes its fills with it.
      if (generation !== repository.generation) return;
      this.#faults.once(repository, error, "the objects of an answer cannot be stored");
    } finally {
      if (source.kind === "transfer") source.reader.leave();
    }
  }

  /** Logs a failure of a store, and takes the damaged packs out, or sets it aside as a whole. */
  async failed(repository: CachedRepository, error: unknown): Promise<void> {
    if (!isDamage(error)) {
      this.#faults.once(
        repository,
        error,
        "stored objects cannot be read; the request goes to the code host",
      );
      if (isGitStoreCode(systemCode(error))) this.#suspect(repository);
      return;
    }
    this.#faults.once(repository, error, "stored objects are damaged; the packs at fault are set aside");
    // Not waited for: it reads all packs, and the request is answered by the code host meanwhile.
    this.#stores.mend(repository.id).catch((failure: unknown) => {
      this.#faults.once(repository, failure, "damaged objects cannot be set aside");
    });
  }

  /** Not waited for either. */
  #suspect({ id }: CachedRepository): void {
    // What opening the repository fails with, the next request for it is told.
    this.#stores.suspect(id).catch(() => undefined);
  }

  async #maintenanceFailed(key: string, error: unknown): Promise<void> {
    this.#faults.once(undefined, error, `the packs of ${key} cannot be merged`);
    const [owner = "", name = ""] = key.split("/");
    if (isGitStoreCode(systemCode(error))) await this.#stores.mend(repositoryId(owner, name));
  }

  /** From now on nothing of the repository is found; its data is removed in the background. */
  async remove(repository: CachedRepository): Promise<void> {
    if (!isStorable(repository.id)) return;
    try {
      await this.#stores.remove(repository.id);
    } catch (error) {
      this.#faults.once(repository, error, "stored objects cannot be removed");
    }
  }

  /** The store of a repository, for who fills it ahead; undefined: nothing may be kept under its name. */
  store({ id }: CachedRepository): RepositoryStore | undefined {
    return isStorable(id) ? this.#stores.of(id) : undefined;
  }

  async areHere(id: RepositoryId, format: ObjectFormat, oids: readonly string[]): Promise<boolean> {
    const repository = this.#repositories.of(id);
    try {
      const view = await this.#stores.of(id).viewSoon(format, (error) => void this.failed(repository, error));
      if (view === undefined) return false;
      try {
        return await this.#own.holdsAll(view.graph, oids);
      } finally {
        view.release();
      }
    } catch (error) {
      await this.failed(repository, error);
      return false;
    }
  }

  /** Whether anything of the repository is in a store. */
  async hasAny(repository: CachedRepository): Promise<boolean> {
    try {
      const store = this.store(repository);
      const view = (await store?.view("sha1")) ?? (await store?.view("sha256"));
      view?.release();
      return view !== undefined;
    } catch (error) {
      await this.failed(repository, error);
      return false;
    }
  }

  /** Bytes of a repository's packs on disk, and when they last changed (milliseconds since the epoch). */
  async diskUse({ id }: CachedRepository): Promise<{ readonly bytes: number; readonly changedAt: number }> {
    return await this.#stores.diskUse(id);
  }

  /** Ends fills in the background; no more begin. */
  stop(): void {
    this.#ended.abort(new Error("the service is stopping"));
    this.#stores.urgency.always();
    this.#stores.stop();
    this.#background.stop();
  }

  /** Packs of a repository that is open, and their bytes. */
  figures(repository: CachedRepository): { readonly packs: number; readonly bytes: number } {
    return this.#stores.figures(repository.id);
  }

  async repositories(): Promise<{ owner: string; name: string }[]> {
    return await this.#stores.repositories();
  }

  async removeLeftovers(): Promise<void> {
    await this.#stores.removeLeftovers();
  }

  /** Waits for removals that are under way. */
  async settled(): Promise<void> {
    await this.#stores.settled();
  }

  async close(): Promise<void> {
    await this.#stores.close();
  }
}

/** Whether an error, which may have crossed threads, is about the content of a store. */
function isGitStoreCode(code: string | undefined): boolean {
  return code !== "locked" && code !== "unservable" && GIT_STORE_ERROR_CODES.some((known) => known === code);
}

/** Whether the pack of the answer needs no object but its own: the client has nothing, and asks for everything. */
function isSelfContained(fetch: FetchRequest): boolean {
  return (
    fetch.haves.length === 0 &&
    fetch.shallows.length === 0 &&
    fetch.deepen === undefined &&
    fetch.deepenSince === undefined &&
    fetch.deepenNots.length === 0 &&
    fetch.filter === undefined &&
    fetch.unknown.length === 0
  );
}
