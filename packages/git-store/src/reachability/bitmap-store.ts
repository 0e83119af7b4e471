import type { BitmapFile } from "./bitmap-file.ts";
import { orInto, type Bitset } from "./bitset.ts";
import { bitmapLength, decodeEwah, encodeEwah } from "./ewah.ts";
import type { ObjectNumbers } from "./object-numbers.ts";

/** Default limit of compressed bitmaps, bytes. Beyond it the least recently used are dropped. */
export const DEFAULT_BITMAP_BYTES = 64 * 1024 * 1024;
/** Maximum length of a chain of differences. */
const MAX_CHAIN = 32;

/** An EWAH bitmap, or its difference (exclusive or) to the bitmap of another commit. */
export interface CompressedBitmap {
  readonly ewah: Buffer;
  /** Object number of the other commit, whose bitmap is not longer. */
  readonly base: number | undefined;
}

/** Layer number of bitmaps that are not stored in a file. */
const NOT_STORED = -1;
/** Maximum bytes of decoded bitmaps that stay in memory. */
const UNPACKED_BYTES = 16 * 1024 * 1024;

/**
 * Bitmaps of the objects that some commits reach, including the commits. They are compressed (EWAH, over the numbers of
 * all objects) and decoded on demand. The most recent ones stay decoded. Any subset of commits can have a bitmap, and
 * callers walk the history of the others.
 */
export class BitmapStore {
  readonly #numbers: ObjectNumbers;
  readonly #limit: number;
  #file: BitmapFile | undefined;
  /** Index positions in pack 0 by object number, for the commits in the `.bitmap` file. */
  #inFile = new Map<number, number>();
  /** Least recently used first. */
  readonly #compressed = new Map<
    number,
    CompressedBitmap & { readonly layer: number; readonly depth: number }
  >();
  /** The bitmap that was added last among those to store. */
  #last: number | undefined;
  #compressedBytes = 0;
  /** Buffer for the next difference. */
  #difference: Bitset = new Uint32Array(0);
  /** Least recently used first. */
  readonly #unpacked = new Map<number, Bitset>();
  #unpackedBytes = 0;

  /** Positions of packs whose files do not contain all of their bitmaps. */
  readonly unsaved = new Set<number>();

  constructor(numbers: ObjectNumbers, limitBytes: number = DEFAULT_BITMAP_BYTES) {
    this.#numbers = numbers;
    this.#limit = limitBytes;
  }

  /** Adds the `.bitmap` file of the first pack. */
  addFile(file: BitmapFile): void {
    const { pack } = this.#numbers.packs[0]!;
    this.#file = file;
    this.#inFile = new Map(file.commits.map((position) => [pack.order.packPositions[position]!, position]));
  }

  /** Tells whether the commit with this object number has a bitmap. */
  has(number: number): boolean {
    return this.#unpacked.has(number) || this.#compressed.has(number) || this.#inFile.has(number);
  }

  /** Adds a compressed bitmap. @param layer position of the pack whose file holds it, see {@link inLayer} */
  addCompressed(number: number, bitmap: CompressedBitmap, layer: number): void {
    if (this.#compressed.has(number) || this.#inFile.has(number)) return;
    const depth = bitmap.base === undefined ? 0 : (this.#compressed.get(bitmap.base)?.depth ?? 0) + 1;
    this.#compressed.set(number, { ...bitmap, layer, depth });
    this.#compressedBytes += bitmap.ewah.length;
    for (const [oldest, dropped] of this.#compressed) {
      if (this.#compressedBytes <= this.#limit) break;
      this.#compressed.delete(oldest);
      this.#compressedBytes -= dropped.ewah.length;
    }
  }

  /**
   * Compresses and adds the bitmap of a commit. Neighbours in history should be added one after the other.
   *
   * @param reaches the objects that the commit reaches; copied
   * @param keep whether to store it in a file: true for tips, false for commits that a client named
   */
  add(number: number, reaches: Bitset, keep: boolean): void {
    if (this.#compressed.has(number) || this.#inFile.has(number)) return;
    const layer = keep ? this.#numbers.packs.length - 1 : NOT_STORED;
    if (keep) this.unsaved.add(layer);
    this.addCompressed(number, this.#compress(reaches), layer);
    if (keep) this.#last = number;
  }

  #compress(reaches: Bitset): CompressedBitmap {
    const bits = reaches.length * 32;
    const plain = encodeEwah(reaches, bits);
    const base = this.#last;
    if (base !== undefined && (this.#compressed.get(base)?.depth ?? 0) < MAX_CHAIN) {
      const known = this.get(base);
      if (known !== undefined) {
        if (this.#difference.length !== reaches.length) this.#difference = new Uint32Array(reaches.length);
        const difference = this.#difference;
        difference.set(reaches);
        for (let i = 0; i < known.length; i++) difference[i]! ^= known[i]!;
        const ewah = encodeEwah(difference, bits);
        if (ewah.length < plain.length) return { ewah, base };
      }
    }
    return { ewah: plain, base: undefined };
  }

  /** Returns the bitmaps for the file of the pack at this position, by object number. */
  inLayer(layer: number): Map<number, CompressedBitmap> {
    const found = new Map<number, CompressedBitmap>();
    for (const [number, entry] of this.#compressed) {
      if (entry.layer === layer) found.set(number, { ewah: entry.ewah, base: entry.base });
    }
    return found;
  }

  /** Object numbers of the commits in the `.bitmap` file of the first pack. */
  get inFile(): Iterable<number> {
    return this.#inFile.keys();
  }

  /** Returns the bitmap of a commit by object number; undefined without one. It is shared: do not write to it. */
  get(number: number): Bitset | undefined {
    const known = this.#unpacked.get(number);
    if (known !== undefined) {
      this.#unpacked.delete(number);
      this.#unpacked.set(number, known);
      return known;
    }
    const set = this.#unpack(number);
    if (set === undefined) return undefined;
    this.#unpacked.set(number, set);
    this.#unpackedBytes += set.byteLength;
    for (const [oldest, dropped] of this.#unpacked) {
      if (this.#unpackedBytes <= UNPACKED_BYTES || oldest === number) break;
      this.#unpacked.delete(oldest);
      this.#unpackedBytes -= dropped.byteLength;
    }
    return set;
  }

  /** Adds the objects that a commit reaches to `target`. @returns false when it has no bitmap */
  addReachable(number: number, target: Bitset): boolean {
    const set = this.get(number);
    if (set === undefined) return false;
    orInto(target, set);
    return true;
  }

  #unpack(number: number): Bitset | undefined {
    const entry = this.#compressed.get(number);
    if (entry !== undefined) {
      this.#compressed.delete(number);
      const set = new Uint32Array(bitmapLength(entry.ewah.readUInt32BE(0)));
      if (entry.base !== undefined) {
        const base = this.get(entry.base);
        if (base === undefined || base.length > set.length) {
          // The other bitmap was dropped, or its file was removed. The difference is useless without it.
          this.#compressedBytes -= entry.ewah.length;
          return undefined;
        }
        set.set(base);
      }
      // Moves it to the end, after its base: the most recently used is dropped last.
      this.#compressed.set(number, entry);
      decodeEwah(entry.ewah, 0, set, "xor");
      return set;
    }
    const position = this.#inFile.get(number);
    if (position === undefined) return undefined;
    const set = new Uint32Array(bitmapLength(this.#numbers.packs[0]!.pack.count));
    this.#file!.addReachable(position, set);
    return set;
  }
}
