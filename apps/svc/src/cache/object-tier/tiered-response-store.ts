import { TimeLimit, untilAborted, type Clock } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import { ObjectStoreError } from "@devplat/object-store";
import type { ObjectFormat } from "@devplat/git-protocol";
import type { RepositoryId } from "../../access/repository-id.ts";
import type { BackgroundWork } from "../background-work.ts";
import type { FaultLog } from "../fault-log.ts";
import type {
  LocalResponseStore,
  PendingResponse,
  ResponseFacts,
  ResponseFigures,
  ResponseStore,
  StoredResponse,
} from "../responses/response-store.ts";
import type { Slice } from "../responses/slices.ts";
import type { EpochSource } from "./manifest/epoch-source.ts";
import type { StoredObject } from "./manifest/manifest.ts";
import type { BucketResponses } from "./responses/bucket-responses.ts";
import { Hydration, type HydrationEnd } from "./responses/hydration.ts";
import { RESPONSE_JOB } from "./responses/response-upload.ts";
import type { ResponseUses } from "./responses/response-uses.ts";
import type { CheckedObjects } from "./slices/checked-objects.ts";
import type { BucketReset } from "./uploads/bucket-reset.ts";
import type { UploadQueue } from "./uploads/upload-queue.ts";

/** Responses that were offered for upload a moment ago. */
const MAX_OFFERED = 16_384;
/** Milliseconds after which a response is offered again: its upload may have been dropped, or it was evicted in the bucket. */
const OFFER_AGAIN_MS = 600_000;

export interface TieredResponseStoreParts {
  readonly local: LocalResponseStore;
  readonly bucket: Pick<BucketResponses, "find" | "known" | "drop">;
  readonly objects: Pick<CheckedObjects, "read">;
  readonly queue: Pick<UploadQueue, "add" | "has">;
  readonly reset: Pick<BucketReset, "begin" | "isPending">;
  readonly uses: Pick<ResponseUses, "note">;
  readonly epochs: Pick<EpochSource, "of">;
  /** Whether more than one request has used a response. */
  readonly isReused: (id: RepositoryId, key: string) => boolean;
  readonly faults: Pick<FaultLog, "once" | "damaged">;
  readonly work: Pick<BackgroundWork, "start">;
  readonly clock: Clock;
  /** `cache.object_timeout_seconds`, in milliseconds: how long a request waits for the first bytes from the bucket. */
  readonly firstByteMs: number;
  /** Fires when the service stops. */
  readonly stopping: AbortSignal;
}

/**
 * Responses in the local store and behind it in the bucket. A local response is served without a request to the bucket. One
 * that is only in the bucket is sent to the client while it is copied to the local store.
 *
 * Limits and evictions are about the local files: {@link remove} leaves the bucket as it is. {@link removeAll} removes both.
 * While the bucket fails, the store works as the local one.
 */
export class TieredResponseStore implements ResponseStore {
  readonly #parts: TieredResponseStoreParts;
  /** Downloads that run, by response. */
  readonly #hydrations = new Map<string, Hydration>();
  readonly #running = new Set<Promise<void>>();
  /** Raised when all responses of a repository are removed. */
  readonly #generations = new Map<string, number>();
  readonly #offered = new BoundedMap<string, true>({ max: MAX_OFFERED, ttlMs: OFFER_AGAIN_MS });
  /** Number of downloads that were stored. */
  #stored = 0;

  constructor(parts: TieredResponseStoreParts) {
    this.#parts = parts;
  }

  async open(id: RepositoryId, key: string): Promise<StoredResponse | "failed" | undefined> {
    const { local, uses } = this.#parts;
    const name = nameOf(id, key);
    const running = this.#hydrations.get(name);
    if (running?.isJoinable === true) return await this.#firstOf(running, id);
    const stored = this.#stored;
    let found = await local.open(id, key);
    if (found === undefined || found === "failed") {
      const response = await this.#fromBucket(id, key);
      if (response !== undefined) uses.note(name, id, key);
      // A download may have ended since the local store was asked.
      if (response !== undefined || stored === this.#stored) return response ?? found;
      found = await local.open(id, key);
      if (found === undefined || found === "failed") return found;
    }
    uses.note(name, id, key);
    this.#offer(id, key, found.size);
    return found;
  }

  async create(id: RepositoryId, key: string): Promise<PendingResponse> {
    const pending = await this.#parts.local.create(id, key);
    return {
      write: async (chunks, position) => pending.write(chunks, position),
      slice: (offset, end, sums) => pending.slice(offset, end, sums),
      chunks: (size) => pending.chunks(size),
      commit: async (sums) => {
        await pending.commit(sums);
        if (this.#parts.isReused(id, key)) this.#offer(id, key, sums.size);
      },
      discard: async () => pending.discard(),
      close: async () => pending.close(),
    };
  }

  async refer(id: RepositoryId, key: string, format: ObjectFormat): Promise<boolean> {
    return await this.#parts.local.refer(id, key, format);
  }

  async list(id: RepositoryId): Promise<readonly ResponseFacts[]> {
    return await this.#parts.local.list(id);
  }

  async remove(id: RepositoryId, name: string): Promise<boolean> {
    return await this.#parts.local.remove(id, name);
  }

  async removeAll(id: RepositoryId): Promise<void> {
    const { local, reset } = this.#parts;
    this.#generations.set(id.key, this.#generationOf(id) + 1);
    for (const [name, hydration] of this.#hydrations) {
      if (!name.startsWith(nameOf(id, ""))) continue;
      this.#hydrations.delete(name);
      hydration.abort(new Error("the repository was purged"));
    }
    await reset.begin(id);
    await local.removeAll(id);
  }

  figures(id: RepositoryId): ResponseFigures {
    return this.#parts.local.figures(id);
  }

  async repositories(): Promise<readonly { readonly owner: string; readonly name: string }[]> {
    return await this.#parts.local.repositories();
  }

  async removeLeftovers(): Promise<number> {
    return await this.#parts.local.removeLeftovers();
  }

  async settled(): Promise<void> {
    await Promise.all(this.#running);
    await this.#parts.local.settled();
  }

  /** Uploads a response that is used again, unless the bucket is known to have it. Costs next to nothing the second time. */
  #offer(id: RepositoryId, key: string, bytes: number): void {
    const { bucket, queue, reset, epochs } = this.#parts;
    const offer = `${nameOf(id, key)} ${epochs.of(id)}`;
    if (this.#offered.get(offer) === true || reset.isPending(id)) return;
    this.#offered.set(offer, true);
    if (bucket.known(id, key) === undefined) queue.add({ kind: RESPONSE_JOB, id, subject: key, bytes });
  }

  /** The response from the bucket, when its first bytes are here. Never throws. */
  async #fromBucket(id: RepositoryId, key: string): Promise<StoredResponse | undefined> {
    const { bucket, reset, clock, firstByteMs, stopping, faults } = this.#parts;
    if (stopping.aborted) return undefined;
    const name = nameOf(id, key);
    using limit = new TimeLimit(clock, firstByteMs, stopping);
    try {
      let generation = this.#generationOf(id);
      let entry = await bucket.find(id, key, limit.signal);
      if (generation !== this.#generationOf(id)) {
        // The manifest has shown a higher epoch, for which the local data was removed. Later purges are another matter.
        generation = this.#generationOf(id);
        entry = await bucket.find(id, key, limit.signal);
      }
      const isPurged = generation !== this.#generationOf(id) || reset.isPending(id);
      if (entry === undefined || isPurged) return undefined;
      const running = this.#hydrations.get(name);
      const hydration = running?.isJoinable === true ? running : this.#hydrate(id, key, entry.object);
      return await this.#firstOf(hydration, id, limit.signal);
    } catch (error) {
      if (!stopping.aborted)
        faults.once({ id }, error, "the bucket cannot be read; requests go on without it");
      return undefined;
    }
  }

  /** Joins a download, and waits for its first bytes. Never throws. */
  async #firstOf(
    hydration: Hydration,
    id: RepositoryId,
    signal?: AbortSignal,
  ): Promise<StoredResponse | undefined> {
    const { clock, firstByteMs, stopping } = this.#parts;
    using limit = new TimeLimit(clock, firstByteMs, ...(signal === undefined ? [stopping] : [signal]));
    const response = hydration.join();
    const slice = Promise.resolve(response.slice(0));
    try {
      let first: Slice | undefined = await untilAborted(slice, limit.signal);
      return {
        ...response,
        slice: (offset) => {
          if (offset !== 0 || first === undefined) return response.slice(offset);
          const given = first;
          first = undefined;
          return given;
        },
        close: async () => {
          first?.release();
          first = undefined;
          await response.close();
        },
      };
    } catch (error) {
      // The response must not be closed while a slice is being read.
      void slice.then(
        async (late) => {
          late.release();
          await response.close();
        },
        async () => response.close(),
      );
      if (limit.signal.aborted && !stopping.aborted) {
        this.#parts.faults.once({ id }, error, "the bucket is slow; requests go on without it");
      }
      return undefined;
    }
  }

  #hydrate(id: RepositoryId, key: string, object: StoredObject): Hydration {
    const { local, objects, stopping } = this.#parts;
    const generation = this.#generationOf(id);
    const hydration = new Hydration({
      size: object.length,
      download: (signal) => objects.read(id, object, { signal }),
      create: async () => local.create(id, key),
      isCurrent: () => generation === this.#generationOf(id),
    });
    const name = nameOf(id, key);
    this.#hydrations.set(name, hydration);
    const run = async (): Promise<void> => {
      const end = await hydration.run(stopping);
      if (end.kind === "stored") this.#stored++;
      if (this.#hydrations.get(name) === hydration) this.#hydrations.delete(name);
      this.#ended(id, key, object, end);
    };
    const running = run().finally(() => this.#running.delete(running));
    this.#running.add(running);
    return hydration;
  }

  #ended(id: RepositoryId, key: string, object: StoredObject, end: HydrationEnd): void {
    const { bucket, faults, work } = this.#parts;
    if (end.kind === "unstored")
      return faults.once({ id }, end.error, "a response from the bucket cannot be kept on the disk");
    if (end.kind !== "failed") return;
    const { error } = end;
    const isBad = error instanceof ObjectStoreError && (error.code === "damaged" || error.code === "missing");
    if (!isBad) return faults.once({ id }, error, "a response cannot be read from the bucket");
    faults.damaged({ id }, "a response in the bucket is damaged or gone and no longer used", {
      key,
      object: object.name,
    });
    const drop = async (): Promise<void> => {
      await bucket.drop(id, object).catch((failure: unknown) => {
        faults.once({ id }, failure, "a damaged response cannot be removed from the manifest in the bucket");
      });
    };
    work.start(drop());
  }

  #generationOf({ key }: RepositoryId): number {
    return this.#generations.get(key) ?? 0;
  }
}

/** Name of a response among those of all repositories. */
function nameOf({ key: repository }: RepositoryId, key: string): string {
  return `${repository} ${key}`;
}
