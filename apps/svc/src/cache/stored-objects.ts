import { systemClock, systemCode, type Clock } from "@devplat/base";
import type { FetchRequest, ObjectFormat } from "@devplat/git-protocol";
import { GIT_STORE_ERROR_CODES } from "@devplat/git-store";
import { AnswerBroke, AskFailed, BaseFetches, type BaseFetchOutcome } from "./base-fetch.ts";
import { BackgroundFills, type BackgroundFillOptions } from "./background-fill.ts";
import type { CachedRepository } from "./cached-repository.ts";
import type { FaultLog } from "./fault-log.ts";
import type { FetchAnswer, FetchJob } from "./fetch-plan.ts";
import { OwnAnswers, type OwnRequest, type OwnVerdict } from "./own-answers.ts";
import { begin, isDamage } from "./own-source.ts";
import { fileChunks, packBytes } from "./pack-stream.ts";
import { PackStores } from "./pack-stores.ts";
import { Quiet } from "./quiet.ts";
import type { RepositoryStore } from "./repository-store.ts";
import { isStorable, repositoryId } from "./repository-id.ts";
import type { UpstreamSlots } from "./slots.ts";

type Job = FetchJob<FetchAnswer>;

/**
 * What the store makes of a request in the end.
 * - `begun`: an answer whose first chunk is made.
 * - `none`: the code host is to be asked; `failed`: and the store does not work.
 * - `relay`: the code host's answer, which is no fetch answer.
 * - `unrelated`: what the code host has now shares no history with the store, which must be set aside.
 * - `busy`: no turn came in time.
 */
export type SettledAnswer<Answer> =
  | { readonly kind: "begun"; readonly chunks: AsyncIterable<Buffer> }
  | { readonly kind: "relay"; readonly answer: Answer }
  | { readonly kind: "none" | "failed" | "unrelated" | "busy" };

/** The same, or `pending` while the code host is asked; `leads`: on behalf of this request. */
export type OwnAnswer<Answer> =
  | SettledAnswer<Answer>
  | { readonly kind: "pending"; readonly leads: boolean; readonly pending: Promise<SettledAnswer<Answer>> };

export interface StoredObjectsOptions {
  readonly storagePath: string;
  readonly hostUrl: string;
  readonly fill: BackgroundFillOptions;
  /** Milliseconds without a request before a repository's store is filled or merged. Default 0. */
  readonly quietMs?: number | undefined;
  /** `cache.prune_unreachable_after`, in milliseconds. Default: never. */
  readonly pruneAfterMs?: number | undefined;
  /** Default false. */
  readonly detectCollisions?: boolean | undefined;
  readonly clock?: Clock;
}

/**
 * The object stores as the cache uses them: answers made from them, answers that fill them. Nothing in here throws; a
 * store that does not work is logged, a damaged one set aside, and the code host answers instead.
 */
export class StoredObjects {
  readonly #stores: PackStores;
  readonly #own: OwnAnswers;
  readonly #base: BaseFetches;
  readonly #background: BackgroundFills;
  readonly #faults: FaultLog;
  readonly #quiet: Quiet;
  readonly #ended = new AbortController();

  constructor(options: StoredObjectsOptions, slots: UpstreamSlots, faults: FaultLog) {
    const { storagePath, hostUrl, fill, quietMs = 0, pruneAfterMs = Infinity, clock = systemClock } = options;
    const { detectCollisions = false } = options;
    this.#quiet = new Quiet({ clock, quietMs });
    this.#stores = new PackStores({
      storagePath,
      hostUrl,
      clock,
      quiet: this.#quiet,
      pruneAfterMs,
      detectCollisions,
      maintenanceFailed: async (key, error) => this.#maintenanceFailed(key, error),
    });
    this.#own = new OwnAnswers(this.#stores);
    this.#base = new BaseFetches(slots);
    this.#background = new BackgroundFills(fill, this.#stores, slots, faults);
    this.#faults = faults;
  }

  /** Whether a tip of a recent yes is, or reaches, each object asked for by id. */
  async maySee({ repository, format, wants }: Job): Promise<boolean> {
    this.#quiet.disturb(repository.id.key);
    try {
      return await this.#own.maySee(repository, format, wants);
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
  async answer<Answer extends FetchAnswer>(
    job: FetchJob<Answer>,
    signal: AbortSignal,
    waitMs: number,
  ): Promise<OwnAnswer<Answer>> {
    const { repository, fetch, format } = job;
    if (fetch === undefined || !isStorable(repository.id)) return { kind: "none" };
    const request = { repository, fetch, format };
    try {
      const verdict = await this.#own.judge(request);
      if (verdict.kind === "cannot") return { kind: "none" };
      if (verdict.kind === "serve") return await this.#begin(request, verdict, signal);
      const running = this.#base.running(job, verdict);
      const outcome = running ?? this.#base.fetch(job, verdict, this.#stores.of(repository.id), waitMs);
      const pending = this.#afterFetch(job, request, verdict, outcome, running === undefined, signal);
      return { kind: "pending", leads: running === undefined, pending };
    } catch (error) {
      return await this.#noAnswer(repository, error, signal);
    }
  }

  async #begin(
    request: OwnRequest,
    verdict: Extract<OwnVerdict, { kind: "serve" }>,
    signal: AbortSignal,
  ): Promise<SettledAnswer<never>> {
    const { chunks } = await begin(this.#own.answer(request, verdict, signal), (error) => {
      if (!signal.aborted) void this.failed(request.repository, error);
    });
    return { kind: "begun", chunks };
  }

  /** What can be answered once the objects that were lacking came, or did not. */
  async #afterFetch<Answer extends FetchAnswer>(
    job: FetchJob<Answer>,
    request: OwnRequest,
    lacks: Extract<OwnVerdict, { kind: "lacks" }>,
    fetching: Promise<BaseFetchOutcome<unknown>>,
    leads: boolean,
    signal: AbortSignal,
  ): Promise<SettledAnswer<Answer>> {
    const { repository } = job;
    const { generation } = repository;
    const { identity } = repository.tips;
    try {
      const outcome = await fetching;
      if (outcome.kind === "busy") return { kind: "busy" };
      // A refusal is for the one whose credential was refused; the others ask for themselves.
      if (outcome.kind === "refused") {
        return leads ? { kind: "relay", answer: outcome.answer as Answer } : { kind: "none" };
      }
      if (outcome.kind === "unrelated") return { kind: "unrelated" };
      if (generation !== repository.generation || identity !== repository.tips.identity)
        return { kind: "none" };
      const verdict = await this.#own.judge(request, new Set(lacks.wants));
      if (verdict.kind === "serve") return await this.#begin(request, verdict, signal);
      if (verdict.kind === "lacks") verdict.view.release();
      return { kind: "none" };
    } catch (error) {
      if (error instanceof AskFailed && leads) throw error.cause;
      if (error instanceof AnswerBroke && leads) {
        this.#faults.once(repository, error.cause, "the objects of an answer cannot be stored");
      }
      if (error instanceof AskFailed || error instanceof AnswerBroke) return { kind: "none" };
      return await this.#noAnswer(repository, error, signal);
    } finally {
      lacks.view.release();
    }
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
   * Fills a store that is empty behind an answer of the code host, once the repository is quiet: with the answer's own
   * pack, if that is stored and needs nothing else, or with a fetch of its own.
   *
   * @param file the stored answer
   */
  async fillBehind(
    job: Job,
    file: { readonly fd: number; readonly bytes: number } | undefined,
  ): Promise<void> {
    const { repository } = job;
    if (job.fetch === undefined || !isStorable(repository.id)) return;
    const { generation } = repository;
    this.#quiet.disturb(repository.id.key);
    try {
      await this.#quiet.wait(repository.id.key, this.#ended.signal);
    } catch {
      return;
    }
    if (generation !== repository.generation) return;
    if (file !== undefined && isSelfContained(job.fetch)) await this.#fillFrom(job, job.fetch, file);
    else await this.#background.fill(job);
  }

  async #fillFrom(
    { repository, format }: Job,
    fetch: FetchRequest,
    file: { readonly fd: number; readonly bytes: number },
  ): Promise<void> {
    const { generation } = repository;
    try {
      const store = this.#stores.of(repository.id);
      const view = await store.view(format);
      view?.release();
      if (view !== undefined || generation !== repository.generation) return;
      const tips = repository.tips.recent();
      const open = (): Promise<AsyncIterable<Buffer>> =>
        Promise.resolve(packBytes(fileChunks(file.fd, file.bytes)));
      const shown = tips.refs.values();
      await store.receive({ open, format, wants: fetch.wants, shown, ifEmpty: true });
    } catch (error) {
      // Data that is being removed takes its fills with it.
      if (generation !== repository.generation) return;
      this.#faults.once(repository, error, "the objects of an answer cannot be stored");
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
      return;
    }
    this.#faults.once(repository, error, "stored objects are damaged; the packs at fault are set aside");
    // Not waited for: it reads all packs, and the request is answered by the code host meanwhile.
    this.#stores.mend(repository.id).catch((failure: unknown) => {
      this.#faults.once(repository, failure, "damaged objects cannot be set aside");
    });
  }

  async #maintenanceFailed(key: string, error: unknown): Promise<void> {
    this.#faults.once(undefined, error, `the packs of ${key} cannot be merged`);
    const [owner = "", name = ""] = key.split("/");
    const code = systemCode(error);
    const isFault = code !== "locked" && GIT_STORE_ERROR_CODES.some((known) => known === code);
    if (isFault) await this.#stores.mend(repositoryId(owner, name));
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

  /** Whether all of these are in the store. */
  async holdsAll(
    repository: CachedRepository,
    format: ObjectFormat,
    oids: readonly string[],
  ): Promise<boolean> {
    try {
      const view = await this.store(repository)?.view(format);
      if (view === undefined) return false;
      try {
        return oids.every((oid) => view.graph.numbers.numberOfOid(oid) >= 0);
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
