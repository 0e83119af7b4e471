/** An action at a point of simulated time. */
export interface Event {
  /** Seconds from the beginning. */
  readonly time: number;
  readonly action: () => void;
}

interface Entry extends Event {
  /** Events of the same time run in the order in which they were added. */
  readonly order: number;
}

/** Future events by time. It is a binary heap, like `CommitQueue` of git-store, which keeps rows of commits only. */
export class EventQueue {
  readonly #entries: Entry[] = [];
  #added = 0;

  get size(): number {
    return this.#entries.length;
  }

  /** Time of the first event; undefined: there is none. */
  get next(): number | undefined {
    return this.#entries[0]?.time;
  }

  push(time: number, action: () => void): void {
    const entries = this.#entries;
    const entry = { time, action, order: this.#added++ };
    let at = entries.length;
    entries.push(entry);
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (!isBefore(entry, entries[parent]!)) break;
      entries[at] = entries[parent]!;
      at = parent;
    }
    entries[at] = entry;
  }

  /** Removes the first event. */
  pop(): Event | undefined {
    const entries = this.#entries;
    const top = entries[0];
    const last = entries.pop();
    if (last === undefined || entries.length === 0) return top;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= entries.length) break;
      if (child + 1 < entries.length && isBefore(entries[child + 1]!, entries[child]!)) child++;
      if (!isBefore(entries[child]!, last)) break;
      entries[at] = entries[child]!;
      at = child;
    }
    entries[at] = last;
    return top;
  }
}

function isBefore(one: Entry, other: Entry): boolean {
  return one.time < other.time || (one.time === other.time && one.order < other.order);
}
