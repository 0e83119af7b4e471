/** Offset deltas: the distance that entries of a stored pack have moved in a new one, equal for runs of neighbours. */
export class OffsetDeltas {
  readonly #starts: number[] = [];
  readonly #offsetDeltas: number[] = [];

  /** Begins a run of entries at this offset of the stored pack. Offsets must increase. */
  begin(start: number, distance: number): void {
    if (this.#starts.at(-1) === start) {
      this.#offsetDeltas[this.#offsetDeltas.length - 1] = distance;
    } else {
      this.#starts.push(start);
      this.#offsetDeltas.push(distance);
    }
  }

  /** Sets the distance for entries from this offset on, in the same run. */
  change(start: number, distance: number): void {
    if (this.#offsetDeltas.at(-1) !== distance) this.begin(start, distance);
  }

  /** Offset of the first entry with the current distance. */
  get lastStart(): number {
    return this.#starts.at(-1) ?? Infinity;
  }

  /** Returns the distance of the entry at this offset, which must be written already. */
  at(offset: number): number {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (this.#starts[middle]! <= offset) low = middle;
      else high = middle - 1;
    }
    return this.#offsetDeltas[low]!;
  }
}
