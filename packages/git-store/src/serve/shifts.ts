/** How far entries of one pack have moved in another: the same distance for stretches of neighbours. */
export class Shifts {
  readonly #starts: number[] = [];
  readonly #shifts: number[] = [];

  /** A stretch of entries follows that starts at this offset of the stored pack (offsets only rise). */
  begin(start: number, shift: number): void {
    if (this.#starts.at(-1) === start) {
      this.#shifts[this.#shifts.length - 1] = shift;
    } else {
      this.#starts.push(start);
      this.#shifts.push(shift);
    }
  }

  /** From this offset on, in the same stretch, entries have moved `shift` bytes. */
  change(start: number, shift: number): void {
    if (this.#shifts.at(-1) !== shift) this.begin(start, shift);
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
    return this.#shifts[low]!;
  }
}
