import { deflateSync } from "node:zlib";
import { GitStoreError } from "../errors.ts";
import { oidBytes, OFS_DELTA, REF_DELTA } from "../object-format.ts";
import type { Pack } from "../pack.ts";
import {
  baseDistanceBytes,
  encodeBaseDistance,
  encodePackHeader,
  encodeTypeAndSize,
  EntryHeader,
  MAX_ENTRY_HEADER_BYTES,
  PACK_HEADER_BYTES,
} from "../pack-entry.ts";
import { readExactly } from "../read-file.ts";
import { countBits, hasBit, nextBit, type Bitset } from "../reachability/bitset.ts";
import type { ObjectGraph } from "../reachability/object-graph.ts";
import { numberAt, type NumberedPack } from "../reachability/object-numbers.ts";
import { EntryCheck } from "./entry-check.ts";
import { OffsetDeltas } from "./offset-deltas.ts";

/** Bytes of a pack looked at in one go: the entries in them are scanned in place. */
const WINDOW_BYTES = 256 * 1024;

/** The stored objects that a pack is made of. */
export type PackSource = Pick<ObjectGraph, "format" | "numbers" | "reader">;

/** Where the bytes of a pack go. */
export interface PackSink {
  /** Bytes so far. */
  readonly length: number;
  append(bytes: Uint8Array, start: number, end: number): void;
  /** Takes at most `length` bytes that `read` puts where they belong. @returns how many */
  fill(length: number, read: (target: Buffer) => void): number;
  /** Ends the pack with the hash of its bytes. */
  appendTrailer(): void;
}

/** What goes into a pack and in which form. */
export interface PackPlan {
  /** Object numbers. */
  readonly send: Bitset;
  /** Objects that may be named as bases without being sent (`thin-pack`). */
  readonly clientHas: Bitset | undefined;
  /** Whether the client reads deltas that name their base by offset. */
  readonly ofsDelta: boolean;
  /** Objects that are not to be deltas; default none. */
  readonly whole?: Bitset;
}

/** How the entries of a pack came about, for the line that ends git's progress. */
export interface PackTotals {
  objects: number;
  /** Copied in one go, whatever they are. */
  verbatim: number;
  /** Of the others: deltas sent. */
  deltas: number;
  /** Deltas whose base the client does not get, sent whole. */
  inflated: number;
}

/** Whether the pack to send is one that is stored, byte for byte. */
export function isStoredPack(graph: PackSource, plan: PackPlan): boolean {
  const first = graph.numbers.packs[0];
  return (
    first !== undefined &&
    plan.ofsDelta &&
    plan.whole === undefined &&
    nextBit(plan.send, 0, first.pack.count, 0) === first.pack.count &&
    nextBit(plan.send, first.pack.count, graph.numbers.count, 1) >= graph.numbers.count
  );
}

/**
 * Writes a pack into a buffer, and pauses whenever the buffer has something to hand out. Entries are copied compressed
 * as they are stored; only where a delta's base moved, is sent by another name, or is not there at the client is an entry
 * made anew. Packs follow one another in the order of object numbers.
 */
export class PackWriter {
  readonly totals: PackTotals = { objects: 0, verbatim: 0, deltas: 0, inflated: 0 };
  readonly #graph: PackSource;
  readonly #plan: PackPlan;
  readonly #out: PackSink;
  readonly #header = new EntryHeader();
  readonly #oidLength: number;
  /** For each pack, how far its entries have moved. */
  readonly #offsetDeltas: OffsetDeltas[] = [];
  readonly #window = Buffer.allocUnsafeSlow(WINDOW_BYTES);
  readonly #head = Buffer.allocUnsafeSlow(MAX_ENTRY_HEADER_BYTES);

  constructor(graph: PackSource, plan: PackPlan, out: PackSink) {
    this.#graph = graph;
    this.#plan = plan;
    this.#out = out;
    this.#oidLength = oidBytes(graph.format);
  }

  /** Writes all of it, trailer included. @throws {GitStoreError} what a corrupt pack calls for: every entry is checked */
  *write(): Generator<void, void, undefined> {
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
        yield* this.#writeRun(numbered, from - base, to - base);
        from = nextBit(send, to, end, 1);
      }
    }
    this.#out.appendTrailer();
  }

  /** Writes the entries at pack positions from `first` below `end`, all of which are to be sent. */
  *#writeRun(numbered: NumberedPack, first: number, end: number): Generator<void, void, undefined> {
    const { pack } = numbered;
    const { offsets } = pack.order;
    const offsetDeltas = this.#offsetDeltas.at(-1)!;
    offsetDeltas.begin(offsets[first]!, this.#out.length - offsets[first]!);
    const { ofsDelta, whole } = this.#plan;
    if (
      first === 0 &&
      end === pack.count &&
      numbered.numbers === undefined &&
      ofsDelta &&
      whole === undefined
    ) {
      // A whole pack, and all its deltas' bases are in it.
      this.totals.verbatim += end;
      yield* this.#copyAll(pack);
      return;
    }
    for (let position = first; position < end;) {
      let last = position + 1;
      while (last < end && offsets[last + 1]! - offsets[position]! <= WINDOW_BYTES) last++;
      if (offsets[last]! - offsets[position]! > WINDOW_BYTES) yield* this.#writeLarge(numbered, position);
      else this.#writeWindow(numbered, position, last);
      position = last;
      yield;
    }
  }

  /** Writes entries that fit into the window together. */
  #writeWindow(numbered: NumberedPack, first: number, end: number): void {
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
      // A base that moved as far as its delta: the usual case.
      if (
        !this.#mustBeWhole(numbered, position) &&
        this.#header.type === OFS_DELTA &&
        this.#plan.ofsDelta &&
        offset - this.#header.baseDistance >= offsetDeltas.lastStart
      ) {
        continue;
      }
      this.#out.append(window, copied, start);
      copied = start + this.#rewrite(numbered, position, window, start, next);
      // What follows the part that was dealt with is copied, so it has moved as far as the output is ahead of it now.
      if (copied > start) offsetDeltas.change(windowStart + next, this.#out.length - (windowStart + copied));
    }
    this.#out.append(window, copied, length);
  }

  /** Writes an entry that is larger than the window. */
  *#writeLarge(numbered: NumberedPack, position: number): Generator<void, void, undefined> {
    const { pack } = numbered;
    const start = pack.order.offsets[position]!;
    const end = pack.order.offsets[position + 1]!;
    const head = this.#window.subarray(0, MAX_ENTRY_HEADER_BYTES);
    readExactly(pack.fd, head, start, pack.path);
    this.#decode(numbered, head, 0, head.length);
    let done = 0;
    if (this.#header.type >= OFS_DELTA) {
      this.totals.deltas++;
      done = this.#rewrite(numbered, position, head, 0, end - start);
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
   * Writes the header of the delta that was just decoded, or the whole object.
   *
   * @returns how many bytes of the stored entry have been dealt with; the rest is to be copied
   */
  #rewrite(numbered: NumberedPack, position: number, bytes: Buffer, start: number, end: number): number {
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
    const { send, clientHas } = this.#plan;
    const isSent = hasBit(send, base);
    const isKnown = isSent || (clientHas !== undefined && hasBit(clientHas, base));
    if (!isKnown || this.#mustBeWhole(numbered, position)) {
      this.totals.deltas--;
      this.totals.inflated++;
      this.#writeWhole(numbered, position);
      return end - start;
    }
    const head = this.#head;
    let at: number;
    if (isSent && this.#plan.ofsDelta && base < numbered.base + position) {
      const distance = this.#out.length - this.#offsetOf(base);
      if (
        type === OFS_DELTA &&
        distance === baseDistance &&
        baseDistanceBytes(distance) === length - sizeBytes(size)
      ) {
        return 0;
      }
      at = encodeBaseDistance(head, encodeTypeAndSize(head, 0, OFS_DELTA, size), distance);
    } else {
      at = encodeTypeAndSize(head, 0, REF_DELTA, size);
      const owner = this.#graph.numbers.packOf(base);
      const oidStart = owner.pack.oidStartAt(base - owner.base);
      owner.pack.index.bytes.copy(head, at, oidStart, oidStart + this.#oidLength);
      at += this.#oidLength;
    }
    this.#out.append(head, 0, at);
    return length;
  }

  #mustBeWhole({ base }: NumberedPack, position: number): boolean {
    return this.#plan.whole !== undefined && hasBit(this.#plan.whole, base + position);
  }

  /** Where an object that was already written stands in the new pack. */
  #offsetOf(number: number): number {
    const { packs } = this.#graph.numbers;
    const owner = this.#graph.numbers.packOf(number);
    const offset = owner.pack.order.offsets[number - owner.base]!;
    return offset + this.#offsetDeltas[packs.indexOf(owner)]!.at(offset);
  }

  #writeWhole(numbered: NumberedPack, position: number): void {
    const object = this.#graph.reader.read(numbered.pack, position);
    const head = this.#head;
    const at = encodeTypeAndSize(head, 0, object.type, object.content.length);
    this.#out.append(head, 0, at);
    const packed = deflateSync(object.content);
    this.#out.append(packed, 0, packed.length);
  }

  /** All entries of a pack, as they are. */
  #copyAll(pack: Pack): Generator<void, void, undefined> {
    return this.#copyRaw(pack, PACK_HEADER_BYTES, pack.order.offsets[pack.count]!, new EntryCheck(pack, 0));
  }

  /** The bytes from `offset` below `end`. The end of a damaged entry is never taken: it is looked at before. */
  *#copyRaw(
    { fd, path }: Pack,
    offset: number,
    end: number,
    check: EntryCheck,
  ): Generator<void, void, undefined> {
    for (let at = offset; at < end;) {
      at += this.#out.fill(end - at, (target) => {
        readExactly(fd, target, at, path);
        check.push(target);
      });
      yield;
    }
  }

  #append(bytes: Buffer): void {
    this.#out.append(bytes, 0, bytes.length);
  }
}

/** Bytes that type and size take at an entry's start. */
function sizeBytes(size: number): number {
  let bytes = 1;
  for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 128)) bytes++;
  return bytes;
}
