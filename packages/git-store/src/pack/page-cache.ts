import { readSync } from "node:fs";
import { GitStoreError } from "../errors.ts";
import { freeBuffer } from "../free-buffer.ts";

/** Bytes of a page. Most pack entries fit in one page. One read costs about 1 µs plus the copy. */
const PAGE_BYTES = 64 * 1024;
/** Maximum bytes of one read of a long range: Node's `readSync` refuses 2 GiB and more. */
const MAX_READ_BYTES = 1024 * 1024 * 1024;
/** Default capacity of a {@link PageCache}, bytes. */
export const DEFAULT_PAGE_CACHE_BYTES = 32 * 1024 * 1024;

/** A file that is open for reading through a {@link PageCache}. */
export interface PagedFile {
  /** Small number, unique among the files that share a cache. */
  readonly id: number;
  readonly fd: number;
  readonly path: string;
  /** Bytes. */
  readonly size: number;
}

/**
 * Reads files through a fixed amount of memory: a direct-mapped cache of 64 KiB pages. The operating system provides
 * the memory when slots are first used. Files must not change while they are cached.
 */
export class PageCache {
  /** Holds the bytes that {@link locate} read last. Valid until the next call. */
  bytes: Buffer;
  readonly #memory: Buffer;
  readonly #slots: number;
  readonly #fileOfSlot: Int32Array;
  readonly #pageOfSlot: Float64Array;
  readonly #filledOfSlot: Int32Array;
  /** Receives ranges that cross the end of a page. */
  #joined: Buffer = Buffer.allocUnsafeSlow(PAGE_BYTES);

  constructor(capacityBytes: number = DEFAULT_PAGE_CACHE_BYTES) {
    this.#slots = Math.max(1, Math.floor(capacityBytes / PAGE_BYTES));
    this.#memory = Buffer.allocUnsafeSlow(this.#slots * PAGE_BYTES);
    this.bytes = this.#memory;
    this.#fileOfSlot = new Int32Array(this.#slots).fill(-1);
    this.#pageOfSlot = new Float64Array(this.#slots);
    this.#filledOfSlot = new Int32Array(this.#slots);
  }

  /**
   * Makes `length` bytes from `offset` available in {@link bytes}.
   *
   * @returns offset in `bytes` of the first byte
   * @throws {GitStoreError} `truncated` when the file ends before them
   */
  locate(file: PagedFile, offset: number, length: number): number {
    const page = Math.floor(offset / PAGE_BYTES);
    const within = offset - page * PAGE_BYTES;
    if (within + length <= PAGE_BYTES) {
      const slot = this.#load(file, page);
      if (within + length > this.#filledOfSlot[slot]!) throw truncated(file, offset, length);
      this.bytes = this.#memory;
      return slot * PAGE_BYTES + within;
    }
    if (offset + length > file.size) throw truncated(file, offset, length);
    if (this.#joined.length < length) this.#joined = Buffer.allocUnsafeSlow(Math.ceil(length * 1.25));
    else if (this.#joined.length > 64 * PAGE_BYTES && length < PAGE_BYTES) {
      // The memory of one very large entry must not stay allocated.
      this.#joined = Buffer.allocUnsafeSlow(PAGE_BYTES);
    }
    this.copy(file, offset, this.#joined, 0, length);
    this.bytes = this.#joined;
    return 0;
  }

  /**
   * Copies `length` bytes from `offset` to `target`. Long ranges do not pass through the pages.
   *
   * @throws {GitStoreError} `truncated` when the file ends before them
   */
  copy(file: PagedFile, offset: number, target: Buffer, targetStart: number, length: number): void {
    let from = offset;
    let to = targetStart;
    const end = offset + length;
    while (from < end) {
      const page = Math.floor(from / PAGE_BYTES);
      const within = from - page * PAGE_BYTES;
      if (within === 0 && end - from >= PAGE_BYTES) {
        const count = readSync(file.fd, target, to, Math.min(end - from, MAX_READ_BYTES), from);
        if (count === 0) throw truncated(file, offset, length);
        from += count;
        to += count;
        continue;
      }
      const slot = this.#load(file, page);
      const count = Math.min(end - from, this.#filledOfSlot[slot]! - within);
      if (count <= 0) throw truncated(file, offset, length);
      this.#memory.copy(target, to, slot * PAGE_BYTES + within, slot * PAGE_BYTES + within + count);
      from += count;
      to += count;
    }
  }

  /** Drops the pages of a file, so that its id can be given to another file. */
  forget(file: PagedFile): void {
    for (let slot = 0; slot < this.#slots; slot++) {
      if (this.#fileOfSlot[slot] === file.id) this.#fileOfSlot[slot] = -1;
    }
  }

  /** Releases the memory. The cache cannot be used afterwards. */
  free(): void {
    freeBuffer(this.#memory);
    freeBuffer(this.#joined);
  }

  #load(file: PagedFile, page: number): number {
    // Each file starts at a different slot, so that the first pages of several packs do not evict each other.
    const slot = (page + file.id * 7919) % this.#slots;
    if (this.#fileOfSlot[slot] === file.id && this.#pageOfSlot[slot] === page) return slot;
    this.#fileOfSlot[slot] = -1;
    let filled = 0;
    while (filled < PAGE_BYTES) {
      const start = slot * PAGE_BYTES + filled;
      const count = readSync(file.fd, this.#memory, start, PAGE_BYTES - filled, page * PAGE_BYTES + filled);
      if (count === 0) break;
      filled += count;
    }
    this.#fileOfSlot[slot] = file.id;
    this.#pageOfSlot[slot] = page;
    this.#filledOfSlot[slot] = filled;
    return slot;
  }
}

function truncated(file: PagedFile, offset: number, length: number): GitStoreError {
  return new GitStoreError("truncated", `read ${file.path}: ${length} bytes at ${offset} pass its end`, {
    path: file.path,
    offset,
  });
}
