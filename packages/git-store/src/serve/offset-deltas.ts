/** How far entries of one pack have moved in another: the same distance for stretches of neighbours. */
export class OffsetDeltas {
  readonly #starts: number[] = [];
  readonly #offsetDeltas: number[] = [];

  /** A stretch of entries follows that starts at this offset of the stored pack (offsets only rise). */
  begin(start: number, distance: number): void {
    if (this.#starts.at(-1) === start) {
      this.#offsetDeltas[this.#offsetDeltas.length - 1] = distance;
    } else {
      this.#starts.push(start);
      this.#offsetDeltas.push(distance);
    }
  }

  /** From this offset on, in the same stretch, entries have moved `distance` bytes. */
  change(start: number, distance: number): void {
    if (this.#offsetDeltas.at(-1) !== distance) this.begin(start, distance);
  }

  /** Where the entries start that have moved as far as the one that is being written. */
  get lastStart(): number {
    return this.#starts.at(-1) ?? Infinity;
  }

  /** How far the entry at this offset has moved. It must be one that was written. */
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
