import type { Simulation } from "./simulation.ts";
import { TimeAverage } from "./time-average.ts";

interface Waiter {
  readonly client: number;
  /** Start tag of start-time fair queueing. */
  readonly tag: number;
  readonly order: number;
  readonly resume: (has: boolean) => void;
  open: boolean;
}

/** Limits of {@link Places}. */
export interface PlacesOptions {
  readonly places: number;
  /** Waiting requests above which a new one is refused. Default: no limit. */
  readonly maxWaiting?: number;
  /** Seconds after which a waiting request is refused. Default: it waits for ever. */
  readonly patience?: number;
}

/** A fair queue for places (start-time fair queueing by client), like `apps/svc/src/cache/admission`. */
export class Places {
  readonly #simulation: Simulation;
  readonly #options: PlacesOptions;
  readonly #waiting: Waiter[] = [];
  readonly #finishTags = new Map<number, number>();
  readonly held: TimeAverage;
  readonly waiting: TimeAverage;
  #virtual = 0;
  #order = 0;
  refused = 0;

  constructor(simulation: Simulation, options: PlacesOptions) {
    this.#simulation = simulation;
    this.#options = options;
    this.held = new TimeAverage(simulation);
    this.waiting = new TimeAverage(simulation);
  }

  /** Share of the places that are in use, on average since the last {@link reset}. */
  get utilisation(): number {
    return this.held.average / this.#options.places;
  }

  /**
   * Takes a place, now or later. The holder must {@link leave}.
   *
   * @param resume gets whether there is a place; false: refused
   */
  take(client: number, weight: number, resume: (has: boolean) => void): void {
    const { places, maxWaiting = Infinity, patience } = this.#options;
    const tag = Math.max(this.#virtual, this.#finishTags.get(client) ?? 0);
    if (this.held.level < places && this.#waiting.length === 0) {
      this.#grant(client, tag, weight);
      resume(true);
      return;
    }
    if (this.#waiting.length >= maxWaiting) {
      this.refused++;
      resume(false);
      return;
    }
    this.#finishTags.set(client, tag + weight);
    const waiter: Waiter = { client, tag, order: this.#order++, resume, open: true };
    this.#waiting.push(waiter);
    this.waiting.add(1);
    if (patience !== undefined) this.#simulation.after(patience, () => this.#giveUp(waiter));
  }

  leave(): void {
    this.held.add(-1);
    if (this.#waiting.length === 0) return;
    let best = 0;
    for (let at = 1; at < this.#waiting.length; at++)
      if (isBefore(this.#waiting[at]!, this.#waiting[best]!)) best = at;
    const [next] = this.#waiting.splice(best, 1);
    if (next === undefined) return;
    next.open = false;
    this.waiting.add(-1);
    this.#virtual = Math.max(this.#virtual, next.tag);
    this.held.add(1);
    next.resume(true);
  }

  reset(): void {
    this.held.reset();
    this.waiting.reset();
    this.refused = 0;
  }

  #grant(client: number, tag: number, weight: number): void {
    this.#virtual = Math.max(this.#virtual, tag);
    this.#finishTags.set(client, tag + weight);
    this.held.add(1);
  }

  #giveUp(waiter: Waiter): void {
    if (!waiter.open) return;
    waiter.open = false;
    this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
    this.waiting.add(-1);
    this.refused++;
    waiter.resume(false);
  }
}

function isBefore(one: Waiter, other: Waiter): boolean {
  return one.tag < other.tag || (one.tag === other.tag && one.order < other.order);
}
