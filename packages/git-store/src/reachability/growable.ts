/** A column of 32-bit numbers that grows at its end; at most twice the memory that its content takes. */
export class GrowableUint32 {
  #values = new Uint32Array(64);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Elements below {@link length} are the column; those beyond are undefined content. */
  get values(): Uint32Array {
    return this.#values;
  }

  push(value: number): void {
    if (this.#length === this.#values.length) this.reserve(this.#length + 1);
    this.#values[this.#length++] = value;
  }

  /** Makes the column `length` long; what is new is 0. */
  extend(length: number): void {
    this.reserve(length);
    this.#length = Math.max(this.#length, length);
  }

  /** Makes room for `length` elements in all. */
  reserve(length: number): void {
    if (length <= this.#values.length) return;
    const grown = new Uint32Array(Math.max(length, this.#values.length * 2));
    grown.set(this.#values);
    this.#values = grown;
  }
}
