import { applyDelta, DeltaHeader } from "../pack/delta.ts";
import { GitStoreError } from "../errors.ts";
import { freeBuffer } from "../free-buffer.ts";
import { createInflater, inflateError } from "../pack/inflate.ts";
import { HEADER_ROOM, oidBytes } from "../object-format.ts";
import { createObjectHasher, type ObjectHasher } from "../object-hasher.ts";
import { EntryHeader } from "../pack/pack-entry.ts";
import { PageCache, type PagedFile } from "../pack/page-cache.ts";
import { BufferPool } from "./buffer-pool.ts";
import type { Control } from "./control.ts";
import { atOffset } from "./failure.ts";
import { expandedLimit, type IndexPackLimits } from "./limits.ts";
import { linkWaiting, RESOLVED, type PackTables, type RefDeltas } from "./tables.ts";

/** An object on the path from a root to the delta in hand. */
interface Frame {
  /** Entry number; -1 for a base that is not in the pack. */
  readonly entry: number;
  readonly size: number;
  /** The object, from {@link HEADER_ROOM} on. Undefined after its memory was released. */
  buffer: Buffer | undefined;
  /** Entry number plus one of the next child, 0 for none. */
  next: number;
  /** Set while children that have no children are resolved. They come first, so that the last child frees the base. */
  leaves: boolean;
}

/** Job of a {@link DeltaResolver}. */
export interface ResolveJob {
  readonly pack: PagedFile;
  readonly tables: PackTables;
  readonly refs: RefDeltas;
  readonly control: Control;
  readonly limits: IndexPackLimits;
  readonly detectCollisions: boolean;
  /** Memory for live objects, bytes. One path from base to delta may exceed it. */
  readonly deltaWindowBytes: number;
  /** Memory for pages of the pack, bytes. */
  readonly packWindowBytes: number;
}

/**
 * Resolves and hashes deltas. It walks the delta forest depth first from each root, and applies each delta once.
 * Several threads can work on the same tables, each with different roots.
 */
export class DeltaResolver {
  readonly #job: ResolveJob;
  readonly #oidLength: number;
  readonly #oids: Buffer;
  readonly #hasher: ObjectHasher;
  readonly #pages: PageCache;
  readonly #pool = new BufferPool();
  readonly #inflater = createInflater();
  readonly #header = new EntryHeader();
  readonly #deltaHeader = new DeltaHeader();
  readonly #frames: Frame[] = [];
  readonly #expandedLimit: number;
  #expanded = 0;
  #resolved = 0;
  /** Offset in `#pages` of the entry whose header was read last. */
  #entryStart = 0;
  #delta: Buffer = Buffer.allocUnsafeSlow(64 * 1024);

  constructor(job: ResolveJob) {
    this.#job = job;
    this.#oidLength = oidBytes(job.tables.format);
    this.#oids = Buffer.from(job.tables.oids.buffer);
    this.#hasher = createObjectHasher(job.tables.format, job.detectCollisions);
    this.#pages = new PageCache(Math.min(job.packWindowBytes, job.pack.size + 64 * 1024));
    this.#expandedLimit = expandedLimit(job.limits, job.pack.size);
  }

  /** Resolves all deltas under the roots that this thread gets from the shared counter. */
  resolveShare(): void {
    const { tables, control } = this.#job;
    control.enter();
    for (let batch = control.takeBatch(tables.count); batch; batch = control.takeBatch(tables.count)) {
      for (let entry = batch.start; entry < batch.end; entry++) {
        // Deltas have a type above 4, and stay above it when resolved.
        if (tables.types[entry]! <= 4 && tables.firstChild[entry] !== 0) this.#resolveUnder(entry);
      }
    }
    control.leave();
  }

  /**
   * Resolves all deltas under a base that is not in the pack.
   *
   * @param first entry number plus one of the first delta; the others follow by `nextSibling`
   */
  resolveExternal(type: number, content: Buffer, first: number): void {
    const buffer = Buffer.allocUnsafeSlow(HEADER_ROOM + content.length);
    content.copy(buffer, HEADER_ROOM);
    this.#walk({ entry: -1, size: content.length, buffer, next: first, leaves: true }, type, first);
  }

  /** Releases the memory. The resolver cannot be used afterwards. */
  free(): void {
    this.#pages.free();
    this.#pool.dropWaiting();
    freeBuffer(this.#delta);
  }

  #resolveUnder(entry: number): void {
    const { tables } = this.#job;
    const offset = tables.offsets[entry]!;
    let frame: Frame;
    try {
      this.#readHeader(entry);
      const { size } = this.#header;
      this.#checkDeltaObject(size);
      frame = { entry, size, buffer: undefined, next: tables.firstChild[entry]!, leaves: true };
      frame.buffer = this.#inflateRoot(frame);
    } catch (error) {
      throw atOffset(error, offset);
    }
    this.#walk(frame, tables.types[entry]!, frame.next);
  }

  #walk(root: Frame, type: number, first: number): void {
    const { tables, control } = this.#job;
    const { firstChild, nextSibling, types } = tables;
    const frames = this.#frames;
    frames.push(root);
    for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
      let child = frame.next;
      if (frame.leaves) {
        while (child !== 0 && firstChild[child - 1] !== 0) child = nextSibling[child - 1]!;
        if (child === 0) {
          frame.leaves = false;
          frame.next = this.#skipResolved(frame === root ? first : firstChild[frame.entry]!);
          continue;
        }
        frame.next = nextSibling[child - 1]!;
      } else {
        if (child === 0) {
          frames.pop();
          this.#release(frame);
          continue;
        }
        frame.next = this.#skipResolved(nextSibling[child - 1]!);
      }
      if ((++this.#resolved & 63) === 0) control.check();
      const entry = child - 1;
      let made: Frame;
      try {
        made = this.#resolve(frames.length - 1, entry);
      } catch (error) {
        throw atOffset(error, tables.offsets[entry]!);
      }
      this.#hasher.hash({
        type,
        buffer: made.buffer!,
        start: HEADER_ROOM,
        size: made.size,
        target: this.#oids,
        targetStart: entry * this.#oidLength,
      });
      types[entry] = type | RESOLVED;
      linkWaiting(tables, this.#job.refs, entry);
      if (!frame.leaves && frame.next === 0) this.#release(frame);
      if (firstChild[entry] === 0) {
        this.#release(made);
      } else {
        made.next = firstChild[entry]!;
        frames.push(made);
      }
    }
  }

  #skipResolved(child: number): number {
    const { types, nextSibling } = this.#job.tables;
    let at = child;
    while (at !== 0 && types[at - 1]! >= RESOLVED) at = nextSibling[at - 1]!;
    return at;
  }

  /** Applies the delta of `entry` to the object of the frame at `depth`. */
  #resolve(depth: number, entry: number): Frame {
    const base = this.#frames[depth]!;
    base.buffer ??= this.#rebuild(depth);
    this.#readDelta(entry);
    const deltaSize = this.#header.size;
    const header = this.#deltaHeader;
    header.decode(this.#delta, 0, deltaSize);
    const size = header.resultSize;
    this.#checkDeltaObject(size);
    this.#expanded += size;
    if (this.#expanded > this.#expandedLimit) {
      throw new GitStoreError(
        "delta_bomb",
        `index pack: its deltas expand to more than ${this.#expandedLimit} bytes`,
      );
    }
    // The size may be false. The system provides the memory only as it is written.
    const buffer = this.#take(HEADER_ROOM + size, depth);
    applyDelta({
      header,
      delta: this.#delta,
      deltaEnd: deltaSize,
      base: base.buffer,
      baseStart: HEADER_ROOM,
      baseSize: base.size,
      result: buffer,
      resultStart: HEADER_ROOM,
    });
    return { entry, size, buffer, next: 0, leaves: true };
  }

  /** Rebuilds the object of a frame whose buffer was released, from the nearest ancestor that still has one. */
  #rebuild(depth: number): Buffer {
    const frames = this.#frames;
    let nearest = depth;
    while (nearest > 0 && frames[nearest]!.buffer === undefined) nearest--;
    const top = frames[nearest]!;
    const borrowed = top.buffer !== undefined;
    top.buffer ??= this.#inflateRoot(top);
    for (let at = nearest + 1; at <= depth; at++) {
      frames[at]!.buffer = this.#resolve(at - 1, frames[at]!.entry).buffer;
      if (at - 1 > nearest || !borrowed) this.#release(frames[at - 1]!);
    }
    return frames[depth]!.buffer!;
  }

  #inflateRoot(frame: Frame): Buffer {
    this.#readHeader(frame.entry);
    const buffer = this.#take(HEADER_ROOM + frame.size + 1, this.#frames.length);
    this.#inflate(frame.entry, buffer, HEADER_ROOM);
    return buffer;
  }

  #readDelta(entry: number): void {
    this.#readHeader(entry);
    const { size } = this.#header;
    if (this.#delta.length < size + 1) this.#delta = Buffer.allocUnsafeSlow(Math.ceil(size * 1.25) + 1);
    this.#inflate(entry, this.#delta, 0);
  }

  /** Leaves the entry's header in `#header` and its bytes located in `#pages`. */
  #readHeader(entry: number): void {
    const { tables, pack } = this.#job;
    const offset = tables.offsets[entry]!;
    const length = tables.offsets[entry + 1]! - offset;
    this.#entryStart = this.#pages.locate(pack, offset, length);
    this.#header.decode(this.#pages.bytes, this.#entryStart, this.#entryStart + length, this.#oidLength);
  }

  /** Inflates the entry whose header was read last. */
  #inflate(entry: number, target: Buffer, targetStart: number): void {
    const { offsets } = this.#job.tables;
    const start = this.#entryStart;
    const end = start + offsets[entry + 1]! - offsets[entry]!;
    const { length, size } = this.#header;
    const used = this.#inflater.inflate({
      input: this.#pages.bytes,
      start: start + length,
      end,
      output: target,
      outputStart: targetStart,
      size,
    });
    if (used < 0) throw inflateError(used, { offset: offsets[entry]! });
  }

  #checkDeltaObject(size: number): void {
    const limit = this.#job.limits.deltaObjectBytes;
    if (size <= limit) return;
    throw new GitStoreError(
      "too_large",
      `index pack: an object of ${size} bytes among deltas, limit ${limit}`,
    );
  }

  /** Takes a buffer from the pool. Above the window it first releases idle buffers, then objects near the root. */
  #take(bytes: number, depth: number): Buffer {
    const pool = this.#pool;
    const window = this.#job.deltaWindowBytes;
    if (!pool.waits(bytes) && pool.heldBytes + bytes > window) {
      pool.dropWaiting();
      for (let at = 0; at < depth && pool.heldBytes + bytes > window; at++) {
        const frame = this.#frames[at]!;
        if (frame.buffer === undefined || frame.entry < 0) continue;
        pool.drop(frame.buffer);
        frame.buffer = undefined;
      }
    }
    return pool.take(bytes);
  }

  #release(frame: Frame): void {
    // A base from the store did not come from the pool, and cannot be rebuilt.
    if (frame.buffer === undefined || frame.entry < 0) return;
    this.#pool.give(frame.buffer);
    frame.buffer = undefined;
  }
}
