import { crc32 } from "node:zlib";
import { GitStoreError } from "../errors.ts";
import type { Pack } from "../pack/pack.ts";

/**
 * Compares the bytes of consecutive entries with their CRC-32 in the pack's index (gitformat-pack, "Version 2 pack-*.idx
 * files"). Copied entries are not inflated, and a new pack with a hash over damaged bytes would look correct. It costs
 * 0.2 µs per entry and 0.3 ms per megabyte.
 */
export class EntryCheck {
  readonly #pack: Pack;
  #position: number;
  #crc = 0;
  /** Remaining bytes of the current entry; 0 without one. */
  #left: number;

  /** @param position pack position of the first entry */
  constructor(pack: Pack, position: number) {
    this.#pack = pack;
    this.#position = position;
    this.#left = this.#length();
  }

  /**
   * @param bytes next bytes of the entries, without the trailer
   * @throws {GitStoreError} `corrupt_object` when an entry that ends in them differs from the indexed one
   */
  push(bytes: Buffer): void {
    for (let at = 0; at < bytes.length && this.#left > 0;) {
      const count = Math.min(this.#left, bytes.length - at);
      this.#crc = crc32(bytes.subarray(at, at + count), this.#crc);
      at += count;
      this.#left -= count;
      if (this.#left === 0) this.#end();
    }
  }

  #end(): void {
    const { index, order, path } = this.#pack;
    const expected = index.crcAt(order.indexPositions[this.#position]!);
    if (this.#crc !== expected) {
      const offset = order.offsets[this.#position]!;
      throw new GitStoreError("corrupt_object", `read ${path}: the entry at ${offset} is damaged`, {
        path,
        offset,
      });
    }
    this.#position++;
    this.#crc = 0;
    this.#left = this.#length();
  }

  #length(): number {
    const { offsets } = this.#pack.order;
    // Nothing is checked after the last entry.
    return this.#position < this.#pack.count ? offsets[this.#position + 1]! - offsets[this.#position]! : 0;
  }
}
