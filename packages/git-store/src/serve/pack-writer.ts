import { promisify } from "node:util";
import { deflate } from "node:zlib";
import { GitStoreError } from "../errors.ts";
import { oidBytes, OFS_DELTA, REF_DELTA } from "../object-format.ts";
import { deflateShort, MAX_SHORT_BYTES } from "../pack/deflate.ts";
import type { PackEntry } from "../pack/pack-entry.ts";
import type { Pack } from "../pack/pack.ts";
import {
  baseDistanceBytes,
  encodeBaseDistance,
  encodePackHeader,
  encodeTypeAndSize,
  EntryHeader,
  MAX_ENTRY_HEADER_BYTES,
  PACK_HEADER_BYTES,
} from "../pack/pack-entry.ts";
import { readExactly } from "../read-file.ts";
import { countBits, hasBit, nextBit, type Bitset } from "../reachability/bitset.ts";
import type { ObjectGraph } from "../reachability/object-graph.ts";
import { numberAt, type NumberedPack } from "../reachability/object-numbers.ts";
import { CHUNK_BYTES, recycleChunk, takeChunk } from "./chunk-pool.ts";
import { composeDeltas } from "./compose-delta.ts";
import { EntryCheck } from "./entry-check.ts";
import { OffsetDeltas } from "./offset-deltas.ts";

/** Bytes of a pack that are scanned at a time. */
const WINDOW_BYTES = CHUNK_BYTES;
/** Maximum output of one turn of the thread pool. Zlib's default would take 16 turns for it. */
const MAX_POOL_OUTPUT_BYTES = 256 * 1024;

const deflateInPool = promisify(deflate);

/** Maximum deltas that are composed into one. git makes chains of 50. */
const MAX_COMPOSED = 64;
/** Maximum bytes of these deltas together: composing them takes some milliseconds, without a pause. */
const MAX_COMPOSED_BYTES = 256 * 1024;

/** A step of the writing. The caller waits for the promise, if there is one, before the next step. */
type WriteSteps = Generator<Promise<void> | undefined, void, undefined>;

/** The stored objects that a pack is built from. */
export type PackSource = Pick<ObjectGraph, "format" | "numbers" | "reader">;

/** Receiver of the bytes of a pack. */
export interface PackSink {
  /** Number of bytes so far. */
  readonly length: number;
  append(bytes: Uint8Array, start: number, end: number): void;
  /** Lets `read` write at most `length` bytes to the sink's memory. @returns the number of bytes */
  fill(length: number, read: (target: Buffer) => void): number;
  /** Appends the hash of all bytes. */
  appendTrailer(): void;
}

/** Content of a pack, and the form of its entries. */
export interface PackPlan {
  /** Object numbers of the content. */
  readonly send: Bitset;
  /** Objects that may be bases although they are not sent (`thin-pack`). */
  readonly clientHas: Bitset | undefined;
  /** Whether the client can read deltas that name their base by offset. */
  readonly ofsDelta: boolean;
  /** Objects that are sent undeltified. Default none. */
  readonly undeltified?: Bitset;
}

/** Counts of the entries of a pack by origin, for the last line of git's progress. */
export interface PackTotals {
  objects: number;
  /** Entries that were copied unchanged in runs. */
  verbatim: number;
  /** Deltas among the other entries. */
  deltas: number;
  /** Loose objects, and deltas that were sent undeltified because the client does not get their base. */
  inflated: number;
}

/** Tells whether the pack to send equals a stored pack byte for byte. */
export function isStoredPack(graph: PackSource, plan: PackPlan): boolean {
  const first = graph.numbers.packs[0];
  return (
    first !== undefined &&
    first.pack.loose === undefined &&
    plan.ofsDelta &&
    plan.undeltified === undefined &&
    nextBit(plan.send, 0, first.pack.count, 0) === first.pack.count &&
    nextBit(plan.send, first.pack.count, graph.numbers.count, 1) >= graph.numbers.count
  );
}

/**
 * Writes a pack into a sink, and yields after about a millisecond, when the sink may have a complete chunk. Entries are copied
 * in compressed form. An entry is rewritten only if its base moved, is named differently, or is missing at the client. The packs
 * follow in the order of object numbers.
 */
export class PackWriter {
  readonly totals: PackTotals = { objects: 0, verbatim: 0, deltas: 0, inflated: 0 };
  readonly #graph: PackSource;
  readonly #plan: PackPlan;
  readonly #out: PackSink;
  readonly #header = new EntryHeader();
  readonly #oidLength: number;
  /** The distances that entries have moved, for each pack. */
  readonly #offsetDeltas: OffsetDeltas[] = [];
  readonly #window = takeChunk();
  readonly #head = Buffer.allocUnsafeSlow(MAX_ENTRY_HEADER_BYTES);

  constructor(graph: PackSource, plan: PackPlan, out: PackSink) {
    this.#graph = graph;
    this.#plan = plan;
    this.#out = out;
    this.#oidLength = oidBytes(graph.format);
  }

  /** Writes the pack with its trailer, once. @throws {GitStoreError} for a corrupt pack, because every entry is checked */
  *write(): WriteSteps {
    try {
      yield* this.#write();
    } finally {
      recycleChunk(this.#window);
    }
  }

  *#write(): WriteSteps {
    const { send } = this.#plan;
    this.totals.objects = countBits(send);
    if (isStoredPack(this.#graph, this.#plan)) {
      const { pack } = this.#graph.numbers.packs[0]!;
      this.totals.verbatim = this.totals.objects;
      this.#append(encodePackHeader(pack.count));
      yield* this.#copyAll(pack);
      this.#append(pack.index.packChecksum);
      return;
    }
    this.#append(encodePackHeader(this.totals.objects));
    for (const numbered of this.#graph.numbers.packs) {
      this.#offsetDeltas.push(new OffsetDeltas());
      const { base } = numbered;
      const end = base + numbered.pack.count;
      for (let from = nextBit(send, base, end, 1); from < end;) {
        const to = nextBit(send, from, end, 0);
        if (numbered.pack.loose === undefined) yield* this.#writeRun(numbered, from - base, to - base);
        else yield* this.#writeLoose(numbered, from - base, to - base);
        from = nextBit(send, to, end, 1);
      }
    }
    this.#out.appendTrailer();
  }

  /** Writes the entries at pack positions `[first, end)`, which are all sent. */
  *#writeRun(numbered: NumberedPack, first: number, end: number): WriteSteps {
    const { pack } = numbered;
    const { offsets } = pack.order;
    const offsetDeltas = this.#offsetDeltas.at(-1)!;
    offsetDeltas.begin(offsets[first]!, this.#out.length - offsets[first]!);
    const { ofsDelta, undeltified } = this.#plan;
    if (
      first === 0 &&
      end === pack.count &&
      numbered.numbers === undefined &&
      ofsDelta &&
      undeltified === undefined
    ) {
      // A complete pack, which contains the bases of all its deltas.
      this.totals.verbatim += end;
      yield* this.#copyAll(pack);
      return;
    }
    for (let position = first; position < end;) {
      let last = position + 1;
      while (last < end && offsets[last + 1]! - offsets[position]! <= WINDOW_BYTES) last++;
      if (offsets[last]! - offsets[position]! > WINDOW_BYTES) yield* this.#writeLarge(numbered, position);
      else yield* this.#writeWindow(numbered, position, last);
      position = last;
      yield undefined;
    }
  }

  /** Writes loose objects. Later packs may have deltas on them, so their offsets are recorded. */
  *#writeLoose(numbered: NumberedPack, first: number, end: number): WriteSteps {
    const { offsets } = numbered.pack.order;
    const offsetDeltas = this.#offsetDeltas.at(-1)!;
    offsetDeltas.begin(offsets[first]!, this.#out.length - offsets[first]!);
    for (let position = first; position < end; position++) {
      yield* this.#writeWhole(numbered, position);
      this.totals.inflated++;
      offsetDeltas.change(offsets[position + 1]!, this.#out.length - offsets[position + 1]!);
    }
  }

  /** Writes entries that together fit the window. */
  *#writeWindow(numbered: NumberedPack, first: number, end: number): WriteSteps {
    const { pack } = numbered;
    const { offsets } = pack.order;
    const windowStart = offsets[first]!;
    const length = offsets[end]! - windowStart;
    const window = this.#window;
    readExactly(pack.fd, window.subarray(0, length), windowStart, pack.path);
    new EntryCheck(pack, first).push(window.subarray(0, length));
    const offsetDeltas = this.#offsetDeltas.at(-1)!;
    let copied = 0;
    for (let position = first; position < end; position++) {
      const start = offsets[position]! - windowStart;
      const next = offsets[position + 1]! - windowStart;
      this.#decode(numbered, window, start, next);
      if (this.#header.type < OFS_DELTA) continue;
      this.totals.deltas++;
      const offset = windowStart + start;
      // The base moved as far as its delta: the usual case.
      if (
        !this.#isUndeltified(numbered, position) &&
        this.#header.type === OFS_DELTA &&
        this.#plan.ofsDelta &&
        offset - this.#header.baseDistance >= offsetDeltas.lastStart
      ) {
        continue;
      }
      this.#out.append(window, copied, start);
      const replaced = this.#rewrite(numbered, position, window);
      if (replaced < 0) yield* this.#writeUndeltified(numbered, position);
      copied = replaced < 0 ? next : start + replaced;
      // The bytes after the rewritten part are copied, so they move by the current difference of the offsets.
      if (copied > start) offsetDeltas.change(windowStart + next, this.#out.length - (windowStart + copied));
    }
    this.#out.append(window, copied, length);
  }

  /** Writes an entry that is larger than the window. */
  *#writeLarge(numbered: NumberedPack, position: number): WriteSteps {
    const { pack } = numbered;
    const start = pack.order.offsets[position]!;
    const end = pack.order.offsets[position + 1]!;
    const head = this.#window.subarray(0, MAX_ENTRY_HEADER_BYTES);
    readExactly(pack.fd, head, start, pack.path);
    this.#decode(numbered, head, 0, head.length);
    let done = 0;
    if (this.#header.type >= OFS_DELTA) {
      this.totals.deltas++;
      done = this.#rewrite(numbered, position, head);
    }
    if (done < 0) {
      yield* this.#writeUndeltified(numbered, position);
      this.#offsetDeltas.at(-1)!.change(end, this.#out.length - end);
      return;
    }
    const check = new EntryCheck(pack, position);
    check.push(head.subarray(0, done));
    if (start + done < end) yield* this.#copyRaw(pack, start + done, end, check);
    this.#offsetDeltas.at(-1)!.change(end, this.#out.length - end);
  }

  #decode(numbered: NumberedPack, bytes: Buffer, start: number, end: number): void {
    if (this.#header.decode(bytes, start, end, this.#oidLength)) return;
    const { path } = numbered.pack;
    throw new GitStoreError("truncated", `read ${path}: an entry ends in its header`, { path });
  }

  /**
   * Writes the header of the delta that was just decoded. It makes no promise and no generator, because most entries of a
   * filtered response come here.
   *
   * @returns number of bytes of the stored entry that this replaces, and the caller copies the rest; -1: the object must be
   *   written undeltified
   */
  #rewrite(numbered: NumberedPack, position: number, bytes: Buffer): number {
    const header = this.#header;
    const { pack } = numbered;
    const { type, size, length, baseDistance, baseOidStart } = header;
    const offset = pack.order.offsets[position]!;
    const basePosition =
      type === OFS_DELTA ? pack.order.positionAt(offset - baseDistance) : pack.find(bytes, baseOidStart);
    if (basePosition < 0) {
      throw new GitStoreError(
        "missing_base",
        `read ${pack.path}: the base of the delta at ${offset} is not in it`,
        {
          path: pack.path,
          offset,
        },
      );
    }
    const base = numberAt(numbered, basePosition);
    if (!this.#isAtClient(base) || this.#isUndeltified(numbered, position)) {
      this.totals.deltas--;
      this.totals.inflated++;
      return -1;
    }
    if (this.#isOffsetDelta(numbered, position, base)) {
      const distance = this.#out.length - this.#offsetOf(base);
      if (
        type === OFS_DELTA &&
        distance === baseDistance &&
        baseDistanceBytes(distance) === length - sizeBytes(size)
      ) {
        return 0;
      }
    }
    this.#writeDeltaHead(numbered, position, base, size);
    return length;
  }

  /** Whether the client gets an object with this response, or has it. */
  #isAtClient(number: number): boolean {
    const { send, clientHas } = this.#plan;
    return hasBit(send, number) || (clientHas !== undefined && hasBit(clientHas, number));
  }

  /** Whether a delta names its base by the distance, because the base was written before. */
  #isOffsetDelta(numbered: NumberedPack, position: number, base: number): boolean {
    const { send, ofsDelta } = this.#plan;
    return hasBit(send, base) && ofsDelta && base < numbered.base + position;
  }

  /** Writes the header of a delta, with the name of its base. @param size of the inflated delta */
  #writeDeltaHead(numbered: NumberedPack, position: number, base: number, size: number): void {
    const head = this.#head;
    let at: number;
    if (this.#isOffsetDelta(numbered, position, base)) {
      const distance = this.#out.length - this.#offsetOf(base);
      at = encodeBaseDistance(head, encodeTypeAndSize(head, 0, OFS_DELTA, size), distance);
    } else {
      at = encodeTypeAndSize(head, 0, REF_DELTA, size);
      const owner = this.#graph.numbers.packOf(base);
      const oidStart = owner.pack.oidStartAt(base - owner.base);
      owner.pack.index.bytes.copy(head, at, oidStart, oidStart + this.#oidLength);
      at += this.#oidLength;
    }
    this.#out.append(head, 0, at);
  }

  /**
   * Writes an object whose base the client does not get as a delta on another object of its chain: that is smaller than the whole
   * object, and takes less time to deflate.
   *
   * @returns false: the client gets none of them, and nothing was written
   */
  #writeOnOtherBase(numbered: NumberedPack, position: number): boolean {
    // A repack counts the length of chains without these deltas.
    if (this.#plan.undeltified !== undefined) return false;
    const { pack } = numbered;
    const { reader } = this.#graph;
    const chain: [position: number, entry: PackEntry][] = [];
    let base = position;
    let bytes = 0;
    do {
      const entry = reader.entry(pack, base);
      bytes += entry.size;
      if (entry.base < 0 || bytes > MAX_COMPOSED_BYTES || chain.length === MAX_COMPOSED) return false;
      chain.push([base, entry]);
      base = entry.base;
    } while (!this.#isAtClient(numberAt(numbered, base)));
    let delta: Buffer | undefined;
    for (const [at, entry] of chain) {
      const inner = reader.inflated(pack, at, entry);
      delta = delta === undefined ? inner : composeDeltas(delta, inner, MAX_SHORT_BYTES);
      if (delta === undefined) return false;
    }
    if (delta === undefined || delta.length > MAX_SHORT_BYTES) return false;
    this.#writeDeltaHead(numbered, position, numberAt(numbered, base), delta.length);
    this.#append(deflateShort(delta));
    this.totals.deltas++;
    this.totals.inflated--;
    return true;
  }

  #isUndeltified({ base }: NumberedPack, position: number): boolean {
    return this.#plan.undeltified !== undefined && hasBit(this.#plan.undeltified, base + position);
  }

  /** Returns the offset in the new pack of an object that is already written. */
  #offsetOf(number: number): number {
    const { packs } = this.#graph.numbers;
    const owner = this.#graph.numbers.packOf(number);
    const offset = owner.pack.order.offsets[number - owner.base]!;
    return offset + this.#offsetDeltas[packs.indexOf(owner)]!.at(offset);
  }

  *#writeUndeltified(numbered: NumberedPack, position: number): WriteSteps {
    if (this.#writeOnOtherBase(numbered, position)) {
      yield undefined;
      return;
    }
    yield* this.#writeWhole(numbered, position);
  }

  /** Deflates an object. */
  *#writeWhole(numbered: NumberedPack, position: number): WriteSteps {
    const { type, content } = this.#graph.reader.read(numbered.pack, position, true);
    const at = encodeTypeAndSize(this.#head, 0, type, content.length);
    this.#out.append(this.#head, 0, at);
    if (content.length > MAX_SHORT_BYTES) {
      // In Node's thread pool: it would block this thread for milliseconds.
      const chunkSize = Math.min(content.length, MAX_POOL_OUTPUT_BYTES);
      yield deflateInPool(content, { chunkSize }).then((packed) => this.#append(packed));
      return;
    }
    this.#append(deflateShort(content));
    // The chain of deltas under a short object can take longer than deflating it.
    yield undefined;
  }

  /** Copies all entries of a pack. */
  #copyAll(pack: Pack): WriteSteps {
    return this.#copyRaw(pack, PACK_HEADER_BYTES, pack.order.offsets[pack.count]!, new EntryCheck(pack, 0));
  }

  /** Copies the bytes `[offset, end)`. Each entry is checked before its last bytes are copied. */
  *#copyRaw({ fd, path }: Pack, offset: number, end: number, check: EntryCheck): WriteSteps {
    for (let at = offset; at < end;) {
      at += this.#out.fill(end - at, (target) => {
        readExactly(fd, target, at, path);
        check.push(target);
      });
      yield undefined;
    }
  }

  #append(bytes: Buffer): void {
    this.#out.append(bytes, 0, bytes.length);
  }
}

/** Number of bytes of type and size at the start of an entry. */
function sizeBytes(size: number): number {
  let bytes = 1;
  for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 128)) bytes++;
  return bytes;
}
