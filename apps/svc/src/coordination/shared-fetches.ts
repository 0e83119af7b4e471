import type { Clock, Logger } from "@devplat/base";
import type { SharedFetchRecord, SharedFetchStore } from "../storage/coordination-store.ts";
import { LedFetch } from "./led-fetch.ts";

/** Milliseconds between two looks at a fetch of another instance. */
const POLL_MS = 200;
/** Milliseconds without a report after which an instance that fetches counts as dead. It reports twice a second. */
const SILENT_MS = 5000;

/** Milliseconds for which the record of a fetch that ended is kept, for people who look into the database. */
const KEEP_MS = 24 * 60 * 60 * 1000;

/** Why a caller asks the code host by itself, without the others: only for logs and metrics. */
export type AloneReason =
  /** Another instance's fetch failed. */
  | "failed"
  /** It will not become a shared object. */
  | "private"
  /** It will not end in time. */
  | "too_long"
  /** The database does not respond. */
  | "unavailable";

/** Next step of a caller that needs data of the code host. */
export type SharedFetchTurn =
  /** Fetch it, and report to {@link LedFetch}, which the caller must end. */
  | { readonly kind: "lead"; readonly fetch: LedFetch }
  /**
   * Read it from the bucket, where another instance has put it, without trusting a miss that was remembered. If it is not
   * there, join again with `insteadOf`.
   */
  | { readonly kind: "shared"; readonly fence: number }
  /** Fetch it. Others do not hear of it. */
  | { readonly kind: "alone"; readonly reason: AloneReason };

export interface SharedFetchesParts {
  readonly store: SharedFetchStore;
  /** Id of this instance. */
  readonly instance: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface SharedFetchesOptions {
  /** `share_wait_seconds` in milliseconds: how long a caller waits, all in all. Default 10 000. */
  readonly waitMs?: number;
  /** Default {@link SILENT_MS}. */
  readonly silentMs?: number;
}

/**
 * One fetch from the code host for all instances. The caller joins requests of its own instance itself (coalesced fetches),
 * and comes here with one of them. Instances never stream through each other: the result goes through the bucket.
 */
export class SharedFetches {
  readonly #parts: SharedFetchesParts;
  readonly #waitMs: number;
  readonly #silentMs: number;

  constructor(
    parts: SharedFetchesParts,
    { waitMs = 10_000, silentMs = SILENT_MS }: SharedFetchesOptions = {},
  ) {
    this.#parts = parts;
    this.#waitMs = waitMs;
    this.#silentMs = silentMs;
  }

  /**
   * Finds out who fetches, and waits for another instance if that is worth it. Never rejects for want of the database: no
   * clone fails because of it.
   *
   * @param key `repositoryKey` with the response key
   * @param signal ends the wait, such as when the client has left
   * @param insteadOf fencing number of a `shared` turn whose object was not in the bucket
   * @throws the reason of the signal
   */
  async join(key: string, signal: AbortSignal, insteadOf?: number): Promise<SharedFetchTurn> {
    const deadline = this.#parts.clock.monotonic() + this.#waitMs;
    try {
      return await this.#join(key, signal, deadline, insteadOf);
    } catch (error) {
      signal.throwIfAborted();
      this.#parts.logger.warn({ err: error }, "a fetch cannot be shared with other instances");
      return { kind: "alone", reason: "unavailable" };
    }
  }

  async #join(
    key: string,
    signal: AbortSignal,
    deadline: number,
    insteadOf: number | undefined,
  ): Promise<SharedFetchTurn> {
    const { store, instance } = this.#parts;
    let hasFailed: "failed" | "private" | undefined;
    for (;;) {
      signal.throwIfAborted();
      const start = await store.begin(key, instance, this.#silentMs, insteadOf);
      if (start.kind === "begun") return { kind: "lead", fetch: this.#led(key, start.fence) };
      if (start.fetch.state === "shared") return { kind: "shared", fence: start.fetch.fence };
      // The others were as fast as this one after a failure. It does not wait twice.
      if (hasFailed !== undefined) return { kind: "alone", reason: hasFailed };
      const end = await this.#end(start.fetch, signal, deadline);
      if (end === "shared") return { kind: "shared", fence: start.fetch.fence };
      if (end === "too_long") return { kind: "alone", reason: end };
      // Silent: the instance has died. The next one that begins fetches.
      if (end !== "silent") hasFailed = end;
    }
  }

  /** Waits for the end of a fetch of another instance, as long as that is worth it. */
  async #end(
    first: SharedFetchRecord,
    signal: AbortSignal,
    deadline: number,
  ): Promise<"shared" | "failed" | "private" | "too_long" | "silent"> {
    const { store, clock } = this.#parts;
    const { key, fence } = first;
    let fetch: SharedFetchRecord | undefined = first;
    let isMarked = false;
    for (;;) {
      // Somebody has begun again, so that one ended without a shared object.
      if (fetch === undefined || fetch.fence !== fence) return "failed";
      if (fetch.state === "shared" || fetch.state === "failed" || fetch.state === "private")
        return fetch.state;
      if (fetch.remainingMs <= 0) return "silent";
      const leftMs = deadline - clock.monotonic();
      if (leftMs <= 0 || expectedMs(fetch) > leftMs) return "too_long";
      if (!isMarked) await store.markAwaited(key, fence);
      isMarked = true;
      await clock.sleep(Math.min(POLL_MS, leftMs), signal);
      fetch = await store.find(key);
    }
  }

  /** Removes old records of all instances. The caller must call it now and then. @throws SvcError `database_unavailable` */
  async clean(): Promise<void> {
    await this.#parts.store.deleteEnded(KEEP_MS);
  }

  #led(key: string, fence: number): LedFetch {
    const { store, clock, logger } = this.#parts;
    return new LedFetch({ store, clock, logger, key, fence, silentMs: this.#silentMs });
  }
}

/** Milliseconds until the end of the transfer at its present rate. 0: nobody can tell yet. */
function expectedMs({ state, bytes, expectedBytes, elapsedMs }: SharedFetchRecord): number {
  if (state !== "fetching" || expectedBytes === undefined || bytes === 0) return 0;
  return (elapsedMs * Math.max(0, expectedBytes - bytes)) / bytes;
}
