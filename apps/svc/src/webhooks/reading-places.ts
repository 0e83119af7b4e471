import type { Clock } from "@devplat/base";
import { ProblemError } from "../http/request/problem.ts";
import { addressKey } from "@devplat/config/address-key";

/** Concurrent bodies: anybody may send one, and its signature can be checked only at its end. */
const PLACES = 8;
/** Milliseconds for which a body keeps its place. Those of the code host arrive in far less. */
const KEPT_MS = 1000;

interface Place {
  readonly address: string;
  readonly since: number;
  readonly controller: AbortController;
}

/** A place that was taken. The caller must leave it in any case. */
export interface TakenPlace {
  /** Aborted when another sender gets the place. */
  readonly signal: AbortSignal;
  leave(): void;
}

/**
 * Places for bodies whose sender is not known yet. When all are taken, a new body gets the oldest place of the address that
 * holds most. So slow unknown senders take places from each other, and the code host finds one.
 */
export class ReadingPlaces {
  readonly #clock: Clock;
  /** In the order in which they were taken. */
  readonly #taken = new Set<Place>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @throws ProblemError 503: all are taken, by readings that have only begun */
  take(address: string): TakenPlace {
    const now = this.#clock.monotonic();
    if (this.#taken.size >= PLACES) {
      const slowest = this.#slowest();
      if (slowest === undefined || now - slowest.since < KEPT_MS) {
        throw new ProblemError({
          code: "busy",
          detail: "Too many concurrent deliveries",
          headers: { "Retry-After": "5", Connection: "close" },
        });
      }
      this.#taken.delete(slowest);
      slowest.controller.abort();
    }
    const place = { address: addressKey(address), since: now, controller: new AbortController() };
    this.#taken.add(place);
    return { signal: place.controller.signal, leave: () => void this.#taken.delete(place) };
  }

  #slowest(): Place | undefined {
    const held = new Map<string, number>();
    for (const { address } of this.#taken) held.set(address, (held.get(address) ?? 0) + 1);
    const most = Math.max(...held.values());
    for (const place of this.#taken) if (held.get(place.address) === most) return place;
    return undefined;
  }
}
