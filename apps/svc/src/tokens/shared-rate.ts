import { setTimeout as sleep } from "node:timers/promises";
import type { Clock, Logger } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import type { OneTimeStore } from "../storage/store.ts";

/** Milliseconds of a window: instances count together within each minute of the clock. */
const WINDOW_MS = 60_000;
/** Part of a limit that an instance admits before its first query, and that each query takes from the budget. */
const PART = 1 / 20;
/** Milliseconds that a request waits for the database before the local limit alone decides. */
const ASK_MS = 1000;
/** Milliseconds without requests to the database after it failed. */
const REST_MS = 5000;
/** Tries to change a count that other instances change too. */
const MAX_TRIES = 20;
/** Maximum milliseconds between two tries. The time is random, so that two instances do not collide again. */
const MAX_PAUSE_MS = 10;
/** Tokens remembered in a window. */
const MAX_REMEMBERED = 10_000;
const KIND = "token_rate";

/** One token in the current window, as this instance sees it. */
interface Share {
  readonly window: number;
  /** Admitted, and not yet in the database. */
  unreported: number;
  /** Taken from the database and not used yet. */
  leased: number;
  /** Whether the database has no more than what is leased. */
  exhausted: boolean;
  asking: Promise<void> | undefined;
}

/**
 * Limits the requests of a token over all instances: they take parts of a minute's budget from a count in the database. Most
 * requests need no query, and a token below a twentieth of its limit never does. Instances with equal clocks admit the limit
 * and a twentieth for each instance, per minute. While the database fails, only the caller's own limit applies.
 */
export class SharedRate {
  readonly #counts: OneTimeStore;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #shares = new BoundedMap<string, Share>({ max: MAX_REMEMBERED });
  #restsUntil = -Infinity;

  constructor(counts: OneTimeStore, clock: Clock, logger: Logger) {
    this.#counts = counts;
    this.#clock = clock;
    this.#logger = logger;
  }

  /**
   * Takes one request of the token.
   *
   * @param perMinute whole requests, at least 1
   * @returns seconds to wait if none is left; a promise if the database must be queried
   */
  take(id: string, perMinute: number): number | undefined | Promise<number | undefined> {
    const now = this.#clock.now();
    const share = this.#share(id, Math.floor(now / WINDOW_MS));
    if (share.leased > 0) {
      share.leased--;
      return undefined;
    }
    if (share.exhausted) return secondsLeft(share, now);
    if (share.unreported < Math.floor(perMinute * PART)) {
      share.unreported++;
      return undefined;
    }
    if (this.#clock.monotonic() < this.#restsUntil) return undefined;
    share.asking ??= this.#lease(id, share, perMinute).finally(() => (share.asking = undefined));
    return share.asking.then(async () => this.take(id, perMinute));
  }

  /** Seconds to wait if the token has used up this minute; undefined: as far as known here, it has not. */
  wait(id: string): number | undefined {
    const now = this.#clock.now();
    const share = this.#shares.peek(id);
    if (share === undefined || share.window !== Math.floor(now / WINDOW_MS)) return undefined;
    return share.exhausted && share.leased === 0 ? secondsLeft(share, now) : undefined;
  }

  #share(id: string, window: number): Share {
    const known = this.#shares.peek(id);
    if (known?.window === window) return known;
    const share: Share = { window, unreported: 0, leased: 0, exhausted: false, asking: undefined };
    this.#shares.set(id, share);
    return share;
  }

  async #lease(id: string, share: Share, perMinute: number): Promise<void> {
    const wanted = share.unreported + Math.max(1, Math.floor(perMinute * PART));
    const late = new AbortController();
    try {
      const { granted, left } = await Promise.race([
        this.#grant(`${id}:${share.window}`, share.window, wanted, perMinute, late.signal),
        this.#clock.sleep(ASK_MS, late.signal).then(() => {
          throw new Error(`no response within ${ASK_MS} ms`);
        }),
      ]);
      share.leased += Math.max(0, granted - share.unreported);
      share.unreported = 0;
      share.exhausted = left === 0;
    } catch (error) {
      this.#restsUntil = this.#clock.monotonic() + REST_MS;
      this.#logger.warn(
        { err: error, rest_seconds: REST_MS / 1000 },
        "requests of tokens are not counted over all instances: the database fails; each instance applies its own limit",
      );
    } finally {
      late.abort();
    }
  }

  /** Takes up to `wanted` from the window's budget. @returns how many it got, and how many are left */
  async #grant(
    key: string,
    window: number,
    wanted: number,
    perMinute: number,
    late: AbortSignal,
  ): Promise<{ readonly granted: number; readonly left: number }> {
    const expiresAt = (window + 2) * WINDOW_MS;
    for (let tries = 0; tries < MAX_TRIES && !late.aborted; tries++) {
      const now = this.#clock.now();
      const record = await this.#counts.get(KIND, key, now);
      const taken = Number(record?.value ?? 0);
      const granted = Math.min(wanted, perMinute - taken);
      if (granted <= 0) return { granted: 0, left: 0 };
      const value = String(taken + granted);
      const isOurs =
        record === undefined
          ? await this.#counts.put({ kind: KIND, key, value, expiresAt }, now)
          : await this.#counts.replace(KIND, key, record.value, value, now);
      if (isOurs) return { granted, left: perMinute - taken - granted };
      await sleep(Math.random() * MAX_PAUSE_MS);
    }
    throw new Error("too many instances change one count");
  }
}

function secondsLeft({ window }: Share, now: number): number {
  return Math.max(1, Math.ceil(((window + 1) * WINDOW_MS - now) / 1000));
}
