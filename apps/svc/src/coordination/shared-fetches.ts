import { TimeLimit, untilAborted, type Clock, type Logger } from "@devplat/base";
import type { SharedFetchRecord, SharedFetchStart, SharedFetchStore } from "../storage/coordination-store.ts";
import { LedFetch } from "./led-fetch.ts";

/** Milliseconds between two looks at a fetch of another instance. */
const POLL_MS = 200;
/** Milliseconds without a report after which an instance that fetches counts as dead. It reports twice a second. */
const SILENT_MS = 5000;
/**
 * Part of the wait that is kept for the caller's own fetch while the other one still transfers: its request comes after an
 * access check, and its bytes go to many clients. So no reader is later than the code host by more than the whole wait.
 */
const OWN_PART = 0.1;
/** Milliseconds that a caller waits for one response of the database, within its whole wait. After them it fetches by itself. */
const RESPONSE_MS = 5000;
/** The same after a caller has waited in vain, or at the end of its whole wait. */
const AWAY_RESPONSE_MS = 500;
/** Why a caller asks the code host by itself, without the others: only for logs and metrics. */
export type AloneReason =
  /** Another instance's fetch failed. */
  | "failed"
  /** It will not become a shared object. */
  | "private"
  /** It will not end in time. */
  | "too_long"
  /** This instance fetches it already, or has fetched it. */
  | "own"
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
  /**
   * Fetch it. Others do not hear of it. `running`: fencing number of a fetch of another instance that goes on, for
   * {@link SharedFetches.becomesShared}.
   */
  | { readonly kind: "alone"; readonly reason: AloneReason; readonly running?: number };

export interface SharedFetchesParts {
  readonly store: SharedFetchStore;
  /** Id of this instance. */
  readonly instance: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface SharedFetchesOptions {
  /** `cache.share_wait_seconds` in milliseconds: how long a caller waits, all in all. Default 10 000. */
  readonly waitMs?: number;
  /** Default {@link SILENT_MS}. */
  readonly silentMs?: number;
}

export interface JoinOptions {
  /** Ends the wait, such as when the client has left. */
  readonly signal: AbortSignal;
  /** Beginning of the caller's wait, in `clock.monotonic()`. Default: now. */
  readonly since?: number;
  /** Milliseconds to wait, all in all. Default: that of the options. */
  readonly waitMs?: number;
  /** Fencing number of a `shared` turn whose object was not in the bucket. */
  readonly insteadOf?: number | undefined;
  /** Called when another instance, which this caller waits for, has received the first bytes. */
  readonly onBegun?: () => void;
}

/**
 * One fetch from the code host for all instances. The caller joins requests of its own instance itself (coalesced fetches),
 * and comes here with one of them. Instances never stream through each other: the result goes through the bucket.
 */
export class SharedFetches {
  readonly #parts: SharedFetchesParts;
  readonly #waitMs: number;
  readonly #silentMs: number;
  /** Whether the database did not respond to the last caller. */
  #isAway = false;

  constructor(
    parts: SharedFetchesParts,
    { waitMs = 10_000, silentMs = SILENT_MS }: SharedFetchesOptions = {},
  ) {
    this.#parts = parts;
    this.#waitMs = waitMs;
    this.#silentMs = silentMs;
  }

  /**
   * Finds out who fetches, and waits for another instance if that is worth it. Never rejects because of the database: no
   * clone fails because of it.
   *
   * @param key `repositoryKey` with the subject of the fetch
   * @throws the reason of the signal
   */
  async join(key: string, options: JoinOptions): Promise<SharedFetchTurn> {
    const { clock, logger } = this.#parts;
    try {
      const { since = clock.monotonic(), waitMs = this.#waitMs } = options;
      const turn = await this.#join(key, options, { end: since + waitMs, ownMs: waitMs * OWN_PART });
      this.#isAway = false;
      return turn;
    } catch (error) {
      options.signal.throwIfAborted();
      if (!this.#isAway)
        logger.warn({ err: error }, "fetches from the code host cannot be shared with other instances");
      this.#isAway = true;
      return { kind: "alone", reason: "unavailable" };
    }
  }

  /**
   * Waits on for a fetch that {@link join} did not wait for any longer, while the caller's own request has no response yet.
   * Never rejects.
   *
   * @returns whether its object can be read from the bucket; false if it ended otherwise, or the signal fired
   */
  async becomesShared(key: string, fence: number, signal: AbortSignal): Promise<boolean> {
    const { store, clock } = this.#parts;
    try {
      for (;;) {
        const fetch = await this.#inTime(store.find(key), Infinity, signal);
        if (fetch?.fence !== fence || fetch.remainingMs <= 0) return false;
        if (fetch.state !== "fetching" && fetch.state !== "uploading") return fetch.state === "shared";
        await clock.sleep(POLL_MS, signal);
      }
    } catch {
      return false;
    }
  }

  async #join(key: string, options: JoinOptions, deadline: Deadline): Promise<SharedFetchTurn> {
    const { instance, clock } = this.#parts;
    const { signal, insteadOf } = options;
    let hasFailed: "failed" | "private" | undefined;
    for (;;) {
      signal.throwIfAborted();
      const start = await this.#begin(key, insteadOf, deadline.end, signal);
      if (start.kind === "begun") return { kind: "lead", fetch: this.#led(key, start.fence) };
      const { fence, state, holder } = start.fetch;
      if (holder === instance) return { kind: "alone", reason: "own" };
      // Its object may be missing in the bucket again and again.
      const isLate = insteadOf !== undefined && clock.monotonic() >= deadline.end;
      if (state === "shared") return isLate ? { kind: "alone", reason: "too_long" } : { kind: state, fence };
      // The others were as fast as this one after a failure. It does not wait twice.
      if (hasFailed !== undefined) return { kind: "alone", reason: hasFailed };
      const end = await this.#end(start.fetch, options, deadline);
      if (end === "shared") return { kind: "shared", fence };
      if (end === "too_long") return { kind: "alone", reason: end, running: fence };
      // Silent: the instance has died. The next one that begins fetches.
      if (end !== "silent") hasFailed = end;
    }
  }

  /** Waits for the end of a fetch of another instance, as long as that is worth it. */
  async #end(
    first: SharedFetchRecord,
    { signal, onBegun }: JoinOptions,
    deadline: Deadline,
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
      if (fetch.bytes > 0) onBegun?.();
      const endMs = deadline.end - clock.monotonic();
      const leftMs = fetch.state === "fetching" ? endMs - deadline.ownMs : endMs;
      if (leftMs <= 0 || expectedMs(fetch) > endMs) return "too_long";
      if (!isMarked) await this.#inTime(store.markAwaited(key, fence), deadline.end, signal);
      isMarked = true;
      await clock.sleep(Math.min(POLL_MS, leftMs), signal);
      fetch = await this.#inTime(store.find(key), deadline.end, signal);
    }
  }

  async #begin(
    key: string,
    insteadOf: number | undefined,
    deadline: number,
    signal: AbortSignal,
  ): Promise<SharedFetchStart> {
    const { store, instance } = this.#parts;
    const begin = store.begin(key, instance, this.#silentMs, insteadOf);
    try {
      return await this.#inTime(begin, deadline, signal);
    } catch (error) {
      // The database may carry it out later. Others would wait for a fetch that nobody makes.
      begin
        .then(async (late) => late.kind === "begun" && store.end(key, late.fence, "failed", 0))
        .catch(() => undefined);
      throw error;
    }
  }

  async #inTime<T>(response: Promise<T>, deadline: number, signal: AbortSignal): Promise<T> {
    const { clock } = this.#parts;
    const leftMs = Math.max(AWAY_RESPONSE_MS, deadline - clock.monotonic());
    using limit = new TimeLimit(
      clock,
      this.#isAway ? AWAY_RESPONSE_MS : Math.min(RESPONSE_MS, leftMs),
      signal,
    );
    return await untilAborted(response, limit.signal);
  }

  #led(key: string, fence: number): LedFetch {
    const { store, clock, logger } = this.#parts;
    return new LedFetch({ store, clock, logger, key, fence, silentMs: this.#silentMs });
  }
}

/** Times of a wait, in milliseconds. */
interface Deadline {
  /** End of the wait, in `clock.monotonic()`. */
  readonly end: number;
  /** The wait ends earlier by this time while the transfer goes on. */
  readonly ownMs: number;
}

/** Milliseconds until the end of the transfer at its present rate. 0: nobody can tell yet. */
function expectedMs({ state, bytes, expectedBytes, elapsedMs }: SharedFetchRecord): number {
  if (state !== "fetching" || expectedBytes === undefined || bytes === 0) return 0;
  return (elapsedMs * Math.max(0, expectedBytes - bytes)) / bytes;
}
