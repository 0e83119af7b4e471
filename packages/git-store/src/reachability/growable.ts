/** A growable column of 32-bit numbers. Its memory is at most twice the size of its content. */
export class GrowableUint32 {
  #values = new Uint32Array(64);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The elements below {@link length} are valid. The content after them is undefined. */
  get values(): Uint32Array {
    return this.#values;
  }

  push(value: number): void {
    if (this.#length === this.#values.length) this.reserve(this.#length + 1);
    this.#values[this.#length++] = value;
  }

  /** Sets the length of the column. New elements are 0. */
  extend(length: number): void {
    this.reserve(length);
    this.#length = Math.max(this.#length, length);
  }

  /** Reserves memory for `length` elements in total. */
  reserve(length: number): void {
    if (length <= this.#values.length) return;
    const grown = new Uint32Array(Math.max(length, this.#values.length * 2));
    grown.set(this.#values);
    this.#values = grown;
  }
}
