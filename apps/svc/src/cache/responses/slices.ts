import { StoredDataDamaged, SUM_BLOCK_BYTES, type BlockSums } from "./block-sums.ts";
import type { ReadBytes } from "./file-io.ts";

/** Bytes of a slice: a larger read or write costs no less per byte (measured, ENGINE notes). */
export const SLICE_BYTES = 512 * 1024;
/** Maximum bytes of all slices in memory: small responses of many repositories, or slices of a large and popular one. */
const MAX_TOTAL_BYTES = 48 * 1024 * 1024;
/**
 * Share of it for slices that were used once. It is small, so that a single large clone does not evict popular slices, and
 * uses memory that is in the processor's cache.
 */
const FRESH_SHARE = 1 / 12;
/** Bytes of an unshared buffer, for a sender while too much memory is in use. One checksum covers them. */
const PRIVATE_BYTES = SUM_BLOCK_BYTES;
/** Buffers of whole slices that are kept for the next file. */
const MAX_IDLE_BUFFERS = 32;

/** A piece of a file in memory that several senders share. It must not be changed. */
export interface Slice {
  readonly bytes: Buffer;
  /** It has been sent, or is not needed. */
  release(): void;
  /** It may not have been sent: the kernel may still take bytes of it, so its memory is never used for another one. */
  abandon(): void;
}

interface Kept {
  readonly file: string;
  readonly index: number;
  readonly bytes: Buffer;
  /** Until it is read. */
  loading: Promise<unknown> | undefined;
  users: number;
  abandoned: boolean;
  /** It is to be found no more; its memory is given back by its last user. */
  dropped: boolean;
}

/**
 * Slices of stored responses in memory. A sender takes one slice after the other. Slices of other senders stay in memory, so
 * that concurrent clones of one repository read it once, and popular slices are not read again. Slices in use are never
 * evicted; beyond the limit no others are kept.
 */
export class Slices {
  readonly #maxBytes: number;
  readonly #files = new Map<string, Map<number, Kept>>();
  /** In the order of use, oldest first: used once, and more often. */
  readonly #fresh = new Set<Kept>();
  readonly #popular = new Set<Kept>();
  #freshBytes = 0;
  #total = 0;
  #inUse = 0;
  readonly #idle: Buffer[] = [];

  constructor(maxBytes = MAX_TOTAL_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** Whether too much memory is in use to hold a second slice in advance. */
  get crowded(): boolean {
    return this.#inUse > this.#maxBytes / 2;
  }

  /** Bytes in memory. */
  get bytes(): number {
    return this.#total;
  }

  /**
   * The bytes from the offset to the end of the slice that it is in, or fewer.
   *
   * @param file names this very content: another file under the same path needs another name
   * @param read reads the file, which must stay open until the promise is settled
   * @param size of the file, or at least up to the end of this slice
   * @param sums that what is read from the disk must have
   * @returns a promise only if it must be waited for
   * @throws what reading threw, or StoredDataDamaged
   */
  take(file: string, read: ReadBytes, offset: number, size: number, sums: BlockSums): Slice | Promise<Slice> {
    const from = offset % SLICE_BYTES;
    const index = (offset - from) / SLICE_BYTES;
    const length = Math.min(SLICE_BYTES, size - (offset - from));
    let kept = this.#files.get(file)?.get(index);
    if (kept === undefined) {
      if (this.crowded) return readPrivately(read, offset, offset - from + length, sums);
      kept = this.#load(file, read, index, length, sums);
    } else if (this.#fresh.delete(kept)) {
      this.#freshBytes -= kept.bytes.length;
      this.#popular.add(kept);
    } else {
      this.#popular.delete(kept);
      this.#popular.add(kept);
    }
    if (kept.users++ === 0) this.#inUse += kept.bytes.length;
    // Only now: it must not make room by dropping itself.
    this.#makeRoom();
    const { loading } = kept;
    if (loading === undefined) return this.#lend(kept, from);
    const mine = kept;
    return loading.then(
      () => this.#lend(mine, from),
      (error: unknown) => {
        this.#giveBack(mine);
        throw error;
      },
    );
  }

  /** Nobody asks for this file again. */
  forget(file: string): void {
    for (const kept of this.#files.get(file)?.values() ?? []) this.#drop(kept);
  }

  #load(file: string, read: ReadBytes, index: number, length: number, sums: BlockSums): Kept {
    const whole = length === SLICE_BYTES;
    const bytes = (whole ? this.#idle.pop() : undefined) ?? Buffer.allocUnsafeSlow(length);
    const kept: Kept = {
      file,
      index,
      bytes,
      loading: undefined,
      users: 0,
      abandoned: false,
      dropped: false,
    };
    kept.loading = readChecked(read, bytes, index * SLICE_BYTES, sums).then(
      () => (kept.loading = undefined),
      (error: unknown) => {
        this.#drop(kept);
        throw error;
      },
    );
    let slices = this.#files.get(file);
    if (slices === undefined) this.#files.set(file, (slices = new Map()));
    slices.set(index, kept);
    this.#fresh.add(kept);
    this.#freshBytes += length;
    this.#total += length;
    return kept;
  }

  #lend(kept: Kept, from: number): Slice {
    let held = true;
    const end = (): void => {
      if (held) this.#giveBack(kept);
      held = false;
    };
    return {
      bytes: from === 0 ? kept.bytes : kept.bytes.subarray(from),
      release: end,
      abandon: () => {
        kept.abandoned = true;
        end();
      },
    };
  }

  #giveBack(kept: Kept): void {
    if (--kept.users > 0) return;
    this.#inUse -= kept.bytes.length;
    if (kept.dropped) this.#reuse(kept);
    else this.#makeRoom();
  }

  #makeRoom(): void {
    while (this.#total > this.#maxBytes) {
      const [first, second] =
        this.#freshBytes > this.#maxBytes * FRESH_SHARE
          ? [this.#fresh, this.#popular]
          : [this.#popular, this.#fresh];
      const oldest = unused(first) ?? unused(second);
      if (oldest === undefined) return;
      this.#drop(oldest);
    }
  }

  #drop(kept: Kept): void {
    if (kept.dropped) return;
    kept.dropped = true;
    const slices = this.#files.get(kept.file);
    slices?.delete(kept.index);
    if (slices?.size === 0) this.#files.delete(kept.file);
    if (this.#fresh.delete(kept)) this.#freshBytes -= kept.bytes.length;
    else this.#popular.delete(kept);
    this.#total -= kept.bytes.length;
    if (kept.users === 0) this.#reuse(kept);
  }

  #reuse(kept: Kept): void {
    if (kept.abandoned || kept.bytes.length !== SLICE_BYTES || this.#idle.length >= MAX_IDLE_BUFFERS) return;
    this.#idle.push(kept.bytes);
  }
}

function unused(slices: ReadonlySet<Kept>): Kept | undefined {
  for (const kept of slices) if (kept.users === 0) return kept;
  return undefined;
}

/** Memory of one sender alone: the rest of the block that the offset is in. @param end of the slice */
async function readPrivately(read: ReadBytes, offset: number, end: number, sums: BlockSums): Promise<Slice> {
  const from = offset % PRIVATE_BYTES;
  const start = offset - from;
  const bytes = Buffer.allocUnsafeSlow(Math.min(PRIVATE_BYTES, end - start));
  await readChecked(read, bytes, start, sums);
  const nothing = (): void => undefined;
  return { bytes: from === 0 ? bytes : bytes.subarray(from), release: nothing, abandon: nothing };
}

/** Bytes from the disk, exactly as they were when they were written. */
async function readChecked(read: ReadBytes, bytes: Buffer, position: number, sums: BlockSums): Promise<void> {
  const count = await read(bytes, position);
  if (count < bytes.length) throw new StoredDataDamaged("a stored response became shorter");
  if (!sums.matches(bytes, position))
    throw new StoredDataDamaged("a stored response does not match its checksum");
}
