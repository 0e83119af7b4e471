import type { FetchRequest } from "@devplat/git-protocol";
import type { CachedRepository } from "./cached-repository.ts";
import type { FaultLog } from "./fault-log.ts";
import type { FetchAnswer, FetchJob } from "./fetch-plan.ts";
import { OwnAnswers } from "./own-answers.ts";
import { begin, isDamage, type BegunAnswer } from "./own-source.ts";
import { fileChunks, packBytes } from "./pack-stream.ts";
import { PackStores } from "./pack-stores.ts";
import { isStorable } from "./repository-id.ts";

type Job = FetchJob<FetchAnswer>;

/**
 * The object stores as the cache uses them: answers made from them, answers that fill them. Nothing in here throws; a
 * store that does not work is logged, a damaged one set aside, and the code host answers instead.
 */
export class StoredObjects {
  readonly #stores: PackStores;
  readonly #own: OwnAnswers;
  readonly #faults: FaultLog;

  constructor(storagePath: string, hostUrl: string, faults: FaultLog) {
    this.#stores = new PackStores(storagePath, hostUrl);
    this.#own = new OwnAnswers(this.#stores);
    this.#faults = faults;
  }

  /** Whether a tip of a recent yes is, or reaches, each object asked for by id. */
  async maySee({ repository, format, wants }: Job): Promise<boolean> {
    try {
      return await this.#own.maySee(repository, format, wants);
    } catch (error) {
      await this.failed(repository, error);
      return false;
    }
  }

  /** An answer that has begun; undefined: the code host is to be asked; `failed`: and the store is damaged. */
  async answer(job: Job, signal: AbortSignal): Promise<BegunAnswer | "failed" | undefined> {
    const { repository, fetch, format } = job;
    if (fetch === undefined || !isStorable(repository.id)) return undefined;
    const request = { repository, fetch, format };
    try {
      const verdict = await this.#own.judge(request);
      if (verdict.kind === "lacks") verdict.view.release();
      if (verdict.kind !== "serve") return undefined;
      return await begin(this.#own.answer(request, verdict, signal), (error) => {
        if (!signal.aborted) void this.failed(repository, error);
      });
    } catch (error) {
      if (signal.aborted) return undefined;
      await this.failed(repository, error);
      return "failed";
    }
  }

  /** Takes in the pack of a stored answer, if there is no store yet and the pack needs nothing else. */
  async fillFrom({ repository, fetch, format }: Job, fd: number, size: number): Promise<void> {
    if (fetch === undefined || !isSelfContained(fetch)) return;
    const { generation } = repository;
    try {
      const store = this.#stores.of(repository.id);
      const view = await store.view(format);
      view?.release();
      if (view !== undefined || generation !== repository.generation) return;
      const tips = repository.tips.recent();
      const pack = packBytes(fileChunks(fd, size));
      await store.receive({ pack, format, wants: fetch.wants, shown: tips.refs.values() });
    } catch (error) {
      // Data that is being removed takes its fills with it.
      if (generation !== repository.generation) return;
      this.#faults.once(repository, error, "the objects of an answer cannot be stored");
    }
  }

  /** Logs a failure of a store, and sets a damaged one aside. */
  async failed(repository: CachedRepository, error: unknown): Promise<void> {
    if (!isDamage(error)) {
      this.#faults.once(
        repository,
        error,
        "stored objects cannot be read; the request goes to the code host",
      );
      return;
    }
    this.#faults.once(repository, error, "stored objects are damaged and were set aside");
    try {
      await this.#stores.setCorrupt(repository.id);
    } catch (failure) {
      this.#faults.once(repository, failure, "damaged objects cannot be set aside");
    }
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

  /** Whether any of these is in the store. */
  async holdsAny(
    { repository, format }: Pick<Job, "repository" | "format">,
    oids: Iterable<string>,
  ): Promise<boolean> {
    try {
      const view = await this.#stores.of(repository.id).view(format);
      if (view === undefined) return false;
      try {
        return Iterator.from(oids).some((oid) => view.graph.numbers.numberOfOid(oid) >= 0);
      } finally {
        view.release();
      }
    } catch (error) {
      await this.failed(repository, error);
      return false;
    }
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
