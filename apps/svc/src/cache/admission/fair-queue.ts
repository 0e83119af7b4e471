import type { Clock } from "@devplat/base";
import { MIN_AGE_MS, Meter } from "./meter.ts";

/** Work that needs a place. */
export interface QueuedWork {
  /** Works of one group share {@link FairQueueOptions.maxPerGroup} places: a repository. */
  readonly group: string;
  /** Client that it is for. Each client gets an equal share of the places. */
  readonly client: string;
  /** Bytes that it is expected to move. */
  readonly weight: number;
  /** Whether it comes before all work without this: a fill, after which most of the others need no place. */
  readonly first?: boolean;
}

/** A place for one work, until it is released. */
export interface Place {
  /** Counts bytes that the work has moved. */
  moved(bytes: number): void;
  /** Releases the place. A second call does nothing. */
  release(): void;
}

/** A work in the queue. */
export interface Waiting {
  /** Resolves when the work has a place. Never rejects. */
  readonly admitted: Promise<Place>;
  /** Works that come before it. */
  readonly ahead: number;
  /** Milliseconds until it has a place, if all goes on as now; undefined: no running work has moved a byte yet. */
  readonly expectedMs: number | undefined;
  /** Leaves the queue. A place that it has already is released. */
  leave(): void;
}

export interface FairQueueOptions {
  /** Places. */
  readonly max: number;
  /** Places for each group. */
  readonly maxPerGroup: number;
}

interface Entry {
  readonly work: QueuedWork;
  /** Start tag: place in the order of the queue. */
  readonly tag: number;
  readonly start: (place: Place) => void;
}

interface Running {
  readonly work: QueuedWork;
  readonly startedAt: number;
  moved: number;
}

/**
 * Places for works that compete for one resource. Waiting works get them by start-time fair queueing (Goyal, Vin and Cheng
 * 1996): the tags of one client's works grow by their weights, so that a client with many works waits behind a client
 * with few.
 */
export class FairQueue {
  readonly #options: FairQueueOptions;
  readonly #clock: Clock;
  readonly #meter = new Meter();
  readonly #running = new Set<Running>();
  readonly #groups = new Map<string, number>();
  /** In the order in which they get places. */
  #waiting: Entry[] = [];
  /** Tag of the work that was admitted last. */
  #virtualTime = 0;
  /** Finish tag of each client's last work, if it is above the virtual time. */
  readonly #finish = new Map<string, number>();

  constructor(options: FairQueueOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /** Works that wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Works that have a place. */
  get running(): number {
    return this.#running.size;
  }

  /** Takes a place if one is free. @returns undefined if none is */
  tryTake(work: QueuedWork): Place | undefined {
    if (!this.#hasRoom(work)) return undefined;
    this.#virtualTime = Math.max(this.#virtualTime, this.#tag(work));
    return this.#begin(work);
  }

  /** Waits for a place. The caller must leave, or release the place. */
  enter(work: QueuedWork): Waiting {
    const { promise: admitted, resolve } = Promise.withResolvers<Place>();
    let given: Place | undefined;
    const start = (place: Place): void => resolve((given = place));
    const entry: Entry = { work, tag: this.#tag(work), start };
    const at = this.#waiting.findIndex((other) => isBefore(entry, other));
    this.#waiting.splice(at < 0 ? this.#waiting.length : at, 0, entry);
    this.#admit();
    const position = (): number => this.#waiting.indexOf(entry);
    const expected = (): number | undefined => this.#expectedMs(entry);
    return {
      admitted,
      get ahead() {
        return Math.max(0, position());
      },
      get expectedMs() {
        return expected();
      },
      leave: () => {
        given?.release();
        this.#waiting = this.#waiting.filter((other) => other !== entry);
      },
    };
  }

  /** Tag of a client's next work. Its share is used from then on. */
  #tag({ client, weight }: QueuedWork): number {
    const tag = Math.max(this.#virtualTime, this.#finish.get(client) ?? 0);
    this.#finish.set(client, tag + weight);
    return tag;
  }

  #hasRoom({ group }: QueuedWork): boolean {
    const { max, maxPerGroup } = this.#options;
    return this.#running.size < max && (this.#groups.get(group) ?? 0) < maxPerGroup;
  }

  #begin(work: QueuedWork): Place {
    const startedAt = this.#clock.monotonic();
    const running: Running = { work, startedAt, moved: 0 };
    this.#meter.begin(startedAt);
    this.#running.add(running);
    this.#groups.set(work.group, (this.#groups.get(work.group) ?? 0) + 1);
    return {
      moved: (bytes) => {
        running.moved += bytes;
        this.#meter.moved(bytes, this.#clock.monotonic());
      },
      release: () => {
        if (!this.#running.delete(running)) return;
        const left = (this.#groups.get(work.group) ?? 1) - 1;
        if (left === 0) this.#groups.delete(work.group);
        else this.#groups.set(work.group, left);
        this.#admit();
        if (this.#running.size === 0) this.#meter.end();
      },
    };
  }

  #admit(): void {
    for (;;) {
      const at = this.#waiting.findIndex(({ work }) => this.#hasRoom(work));
      const [entry] = at < 0 ? [] : this.#waiting.splice(at, 1);
      if (entry === undefined) break;
      this.#virtualTime = Math.max(this.#virtualTime, entry.tag);
      entry.start(this.#begin(entry.work));
    }
    for (const [client, tag] of this.#finish) if (tag <= this.#virtualTime) this.#finish.delete(client);
    // Nobody waits: what a client has used does not count against it later.
    if (this.#running.size === 0 && this.#waiting.length === 0) this.#finish.clear();
  }

  /**
   * The works that run and those ahead, at the speed of those that run now. With `n` running and `k` ahead, the place
   * comes after `k + 1` of these `n + k` works.
   */
  #expectedMs({ work }: Entry): number | undefined {
    const { maxPerGroup } = this.#options;
    // If the group has no room, only its own works count.
    const isGroupFull = (this.#groups.get(work.group) ?? 0) >= maxPerGroup;
    const counts = (other: QueuedWork): boolean => !isGroupFull || other.group === work.group;
    const now = this.#clock.monotonic();
    const works = [...this.#running].filter((running) => counts(running.work));
    let left = works.reduce((sum, running) => sum + Math.max(0, running.work.weight - running.moved), 0);
    const perMs = isGroupFull ? meanSpeed(works, now) : this.#meter.perMs(now);
    let ahead = 0;
    for (const other of this.#waiting) {
      if (other.work === work) break;
      if (!counts(other.work)) continue;
      ahead++;
      left += other.work.weight;
    }
    if (perMs === undefined) return undefined;
    return ((left / perMs) * (ahead + 1)) / (works.length + ahead);
  }
}

/** Bytes in a millisecond, by works that run for some time; undefined: not known. */
function meanSpeed(works: readonly Running[], now: number): number | undefined {
  const old = works.filter(({ startedAt, moved }) => moved > 0 && now - startedAt >= MIN_AGE_MS);
  if (old.length === 0) return undefined;
  return old.reduce((sum, { startedAt, moved }) => sum + moved / (now - startedAt), 0);
}

function isBefore(entry: Entry, other: Entry): boolean {
  const [isFirst, isOtherFirst] = [entry.work.first === true, other.work.first === true];
  return isFirst === isOtherFirst ? entry.tag < other.tag : isFirst;
}
