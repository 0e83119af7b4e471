import { within } from "@devplat/base";
import type { FetchRequest } from "@devplat/git-protocol";
import type { IdleDetector, Mirrors, MirrorThreads } from "@devplat/git-mirror";
import { isStorable } from "../../access/repository-id.ts";
import type { CachedRepository } from "../cached-repository.ts";
import type { CoalescedFetch } from "../coalescing/coalesced-fetch.ts";
import { fetchChunks, packBytes } from "../coalescing/pack-stream.ts";
import { mayStore, type FetchJob, type FillJob } from "../fetch-plan.ts";
import type { MirrorFaults } from "../mirror-faults.ts";
import type { CachePolicies } from "../policy.ts";
import type { FetchForAll, FetchSharing } from "../fetch-sharing.ts";
import { FILL_SUBJECT, type BackgroundFills } from "./background-fill.ts";
import { FillBehind, type CompleteResponse, type FillSource } from "./fill-behind.ts";
import { FillStarts } from "./fill-starts.ts";

/** Milliseconds that a request waits for a fill whose pack has arrived. Then it is forwarded. */
const FINISHING_MS = 5000;

export interface MirrorFillerParts {
  readonly mirrors: Mirrors;
  readonly threads: Pick<MirrorThreads, "urgency">;
  readonly background: BackgroundFills;
  readonly idle: IdleDetector;
  readonly faults: MirrorFaults;
  readonly policies: CachePolicies;
  /** Undefined: each instance fills its mirror for itself. */
  readonly sharing: FetchSharing | undefined;
  /** Fires when the service stops. */
  readonly stopping: AbortSignal;
}

/** Fills empty mirrors behind transfers from the code host to clients. */
export class MirrorFiller {
  readonly #parts: MirrorFillerParts;
  readonly #starts = new FillStarts();
  /** Fills whose packs had arrived when they started, by repository. */
  readonly #finishing = new Map<string, Promise<void>>();

  constructor(parts: MirrorFillerParts) {
    this.#parts = parts;
  }

  /**
   * Waits for the fill of an empty mirror whose pack has arrived, if the refs show the wants of the request: then the
   * fill brings their objects. A fill behind another transfer of the repository starts now.
   *
   * @returns whether there was a fill that has ended
   */
  async finished({ repository, fetch }: Pick<FetchJob, "repository" | "fetch">): Promise<boolean> {
    const { id, tips } = repository;
    const { key } = id;
    // The transfer of a request for all objects is itself the source of a fill.
    if (fetch === undefined || !isSelfContained(fetch)) this.#starts.startOne(key);
    const finishing = this.#finishing.get(key) ?? this.#parts.mirrors.of(id).finishing;
    if (finishing === undefined || fetch?.wants.every((oid) => tips.isTip(oid)) !== true) return false;
    if (await this.hasAny(repository)) return false;
    const over = finishing.then(() => true);
    return (await this.#parts.threads.urgency.during(within(over, FINISHING_MS))) === true;
  }

  /**
   * Starts a fill behind a running transfer of the repository, and waits for it.
   *
   * @returns false: there is no transfer
   */
  async behindTransfer({ id }: CachedRepository): Promise<boolean> {
    this.#starts.startOne(id.key);
    const done = this.#starts.done(id.key);
    await done;
    return done !== undefined;
  }

  /** Whether the mirror of a repository holds anything. */
  async hasAny(repository: CachedRepository): Promise<boolean> {
    const { mirrors, faults } = this.#parts;
    if (!isStorable(repository.id)) return false;
    try {
      const mirror = mirrors.of(repository.id);
      const view = (await mirror.view("sha1")) ?? (await mirror.view("sha256"));
      view?.release();
      return view !== undefined;
    } catch (error) {
      await faults.failed(repository, error);
      return false;
    }
  }

  /**
   * Prepares the fill of an empty mirror behind a transfer from the code host: with the pack of the transfer, if that is
   * stored and needs no other objects, or with a separate fetch.
   *
   * @param transfer from the code host
   * @param isStored whether it is written to a file
   * @param begun called with the fill when it starts
   * @returns undefined if no fill is possible
   */
  fillBehind(
    job: FillJob,
    transfer: CoalescedFetch,
    isStored: boolean,
    begun: (work: Promise<void>) => void,
  ): FillBehind | undefined {
    const { repository, fetch } = job;
    if (fetch === undefined || !isStorable(repository.id)) return undefined;
    const { key } = repository.id;
    const selfContained = isStored && isSelfContained(fetch);
    const forAll = selfContained ? this.#leadFill(repository) : undefined;
    const behind: FillBehind = new FillBehind({
      transfer,
      selfContained,
      fill: async (source) => {
        const work = this.#fill(job, fetch, source);
        begun(work);
        await this.#finish(key, work, source?.isHere === true);
      },
      over: () => {
        this.#starts.remove(key, behind);
        void forAll?.then(async (led) => this.#endFill(repository, led));
      },
    });
    this.#starts.add(key, behind);
    return behind;
  }

  /**
   * Tells the other instances that a transfer will fill the mirror, so that they do not fetch the whole repository, too, behind
   * a shallow or filtered response. Never rejects.
   *
   * @returns undefined: another instance fills a mirror already, or instances do not share fetches
   */
  async #leadFill({ id }: CachedRepository): Promise<FetchForAll | undefined> {
    const { sharing, stopping: signal } = this.#parts;
    const turn = await sharing?.objects(id, FILL_SUBJECT, { signal, waitMs: 0 }).catch(() => undefined);
    return turn?.kind === "lead" ? turn.fetch : undefined;
  }

  /** Says how the fill ended. Never rejects. */
  async #endFill(repository: CachedRepository, led: FetchForAll | undefined): Promise<void> {
    if (led === undefined) return;
    if (await this.hasAny(repository)) led.complete();
    else led.giveUp();
  }

  /** Whether a response has all objects that its wants need, so that an empty mirror can be filled from it alone. */
  canFillFrom({ repository, fetch }: Pick<FetchJob, "repository" | "fetch">): boolean {
    return fetch !== undefined && isStorable(repository.id) && isSelfContained(fetch);
  }

  /** Fills an empty mirror from a stored response, unless a transfer of the repository is running. Never rejects. */
  async fillFrom(job: FillJob, file: CompleteResponse): Promise<void> {
    const { repository, fetch } = job;
    const { key } = repository.id;
    if (fetch === undefined || this.#starts.done(key) !== undefined) return;
    const work = this.#fill(job, fetch, { kind: "file", file, isHere: true });
    await this.#finish(key, work, true);
  }

  /** Waits for a fill. @param isHere its pack has arrived, so that requests wait for it, too */
  async #finish(key: string, work: Promise<void>, isHere: boolean): Promise<void> {
    if (isHere) this.#finishing.set(key, work);
    await work;
    if (this.#finishing.get(key) === work) this.#finishing.delete(key);
  }

  async #fill(job: FillJob, fetch: FetchRequest, source: FillSource): Promise<void> {
    const { repository } = job;
    const { stopping, policies } = this.#parts;
    if (stopping.aborted || !mayStore(job, policies)) {
      if (source?.kind === "transfer") source.reader.leave();
      return;
    }
    this.#parts.idle.touch(repository.id.key);
    if (source === undefined) await this.#parts.background.fill(job);
    else await this.#fillFrom(job, fetch, source);
  }

  async #fillFrom(job: FillJob, fetch: FetchRequest, source: NonNullable<FillSource>): Promise<void> {
    const { repository, format } = job;
    const { policies } = this.#parts;
    const { kind, isHere: isLocal } = source;
    const chunks = kind === "file" ? source.file.chunks() : fetchChunks(source.reader);
    try {
      // Taken before the check: the removal of the data ends all fills of this mirror.
      const mirror = this.#parts.mirrors.of(repository.id);
      const view = await mirror.view(format);
      view?.release();
      if (view !== undefined || !mayStore(job, policies)) return;
      const tips = repository.tips.recent();
      const open = (): Promise<AsyncIterable<Buffer>> => Promise.resolve(packBytes(chunks));
      const shown = tips.refs.values();
      await mirror.receive({ open, format, wants: fetch.wants, shown, ifEmpty: true, isLocal });
    } catch (error) {
      // A fill of data that is being removed is expected to fail.
      if (!mayStore(job, policies)) return;
      this.#parts.faults.once(repository, error, "the objects of a response cannot be stored");
    } finally {
      if (source.kind === "transfer") source.reader.leave();
    }
  }
}

/** Whether the pack of the response needs no object but its own: the client has nothing, and asks for everything. */
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
