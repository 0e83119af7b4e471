import { corruptIn } from "../errors.ts";
import { DeltaHeader } from "../pack/delta.ts";

const corrupt = corruptIn("corrupt_delta", "a delta");

/** Maximum bytes of an insertion: its length is the opcode. */
const MAX_INSERT_BYTES = 0x7f;
/** Maximum bytes of a copy. Longer ones are split, as git does. */
const MAX_COPY_BYTES = 0xffff;

/** The instructions of a delta, as columns: one row each. */
interface Instructions {
  readonly header: DeltaHeader;
  readonly count: number;
  /** Offsets in the result. One more than there are rows: the last is the size of the result. */
  readonly results: Float64Array;
  /** Offset in the base of a copy; -1 - the offset in the delta of an insertion. */
  readonly sources: Float64Array;
}

/**
 * Makes one delta of two: from the base of `inner` to the result of `outer`, whose base is the result of `inner`. Nothing is
 * compared: each copy of `outer` becomes the instructions of `inner` that made these bytes. Two small deltas can make a huge one, if
 * `outer` copies all of `inner` again and again.
 *
 * @param limit of the delta in bytes, and of the instructions that are followed
 * @returns undefined above the limit
 * @throws {GitStoreError} `corrupt_delta` if a delta cannot be read, or they do not fit each other
 */
export function composeDeltas(outer: Uint8Array, inner: Uint8Array, limit: number): Buffer | undefined {
  const first = instructionsOf(inner);
  const second = instructionsOf(outer);
  if (second.header.baseSize !== first.header.resultSize)
    throw corrupt("it is not for the result of the other one");
  const out = new DeltaWriter(first.header.baseSize, second.header.resultSize, limit);
  for (let row = 0; row < second.count && !out.isFull; row++) {
    const length = second.results[row + 1]! - second.results[row]!;
    const source = second.sources[row]!;
    if (source < 0) out.insert(outer, -1 - source, length);
    else copyThrough(first, inner, source, length, out);
  }
  return out.finish();
}

/** Writes the bytes `[from, from + length)` of a delta's result. */
function copyThrough(
  { count, results, sources }: Instructions,
  delta: Uint8Array,
  from: number,
  length: number,
  out: DeltaWriter,
): void {
  const end = from + length;
  let row = rowAt(results, count, from);
  for (let at = from; at < end && !out.isFull; row++) {
    const skipped = at - results[row]!;
    const take = Math.min(results[row + 1]!, end) - at;
    const source = sources[row]!;
    if (source < 0) out.insert(delta, -1 - source + skipped, take);
    else out.copy(source + skipped, take);
    at += take;
  }
}

/** The row that makes a byte of the result. */
function rowAt(results: Float64Array, count: number, offset: number): number {
  let low = 0;
  let high = count - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (results[middle]! <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}

function instructionsOf(delta: Uint8Array): Instructions {
  const header = new DeltaHeader();
  header.decode(delta, 0, delta.length);
  // An instruction has at least two bytes, apart from a copy of 64 KiB from the begin.
  const room = delta.length - header.end;
  const results = new Float64Array(room + 1);
  const sources = new Float64Array(room);
  let count = 0;
  let to = 0;
  for (let at = header.end; at < delta.length;) {
    const op = delta[at++]!;
    let length = 0;
    if (op & 0x80) {
      let from = 0;
      // Reading past the end gives undefined, which counts as 0 here; the check after it refuses the delta.
      if (op & 0x01) from = delta[at++]!;
      if (op & 0x02) from |= delta[at++]! << 8;
      if (op & 0x04) from |= delta[at++]! << 16;
      if (op & 0x08) from += delta[at++]! * 0x1000000;
      if (op & 0x10) length = delta[at++]!;
      if (op & 0x20) length |= delta[at++]! << 8;
      if (op & 0x40) length |= delta[at++]! << 16;
      if (length === 0) length = 0x10000;
      if (from + length > header.baseSize) throw corrupt("it copies from beyond its base");
      sources[count] = from;
    } else {
      if (op === 0) throw corrupt("opcode 0, which is reserved");
      length = op;
      sources[count] = -1 - at;
      at += op;
    }
    if (at > delta.length) throw corrupt("it ends within an instruction");
    results[count++] = to;
    to += length;
  }
  if (to !== header.resultSize) throw corrupt("its instructions do not give its result size");
  results[count] = to;
  return { header, count, results, sources };
}

/** Writes a delta. Insertions and copies that follow each other become one. */
class DeltaWriter {
  #bytes = Buffer.allocUnsafe(4096);
  #length = 0;
  /** Offset of the length of the insertion that is written; -1: none is. */
  #insertAt = -1;
  #copyFrom = 0;
  #copyLength = 0;

  readonly #limit: number;
  #instructions = 0;

  constructor(baseSize: number, resultSize: number, limit: number) {
    this.#limit = limit;
    this.#size(baseSize);
    this.#size(resultSize);
  }

  /** Whether the limit is exceeded. What is written then is not used. */
  get isFull(): boolean {
    return this.#length > this.#limit || this.#instructions > this.#limit;
  }

  insert(source: Uint8Array, start: number, length: number): void {
    this.#instructions++;
    this.#endCopy();
    for (let at = start, end = start + length; at < end;) {
      if (this.#insertAt < 0 || this.#bytes[this.#insertAt] === MAX_INSERT_BYTES) {
        this.#reserve(1);
        this.#insertAt = this.#length++;
        this.#bytes[this.#insertAt] = 0;
      }
      const written = this.#bytes[this.#insertAt]!;
      const take = Math.min(end - at, MAX_INSERT_BYTES - written);
      this.#reserve(take);
      this.#bytes.set(source.subarray(at, at + take), this.#length);
      this.#length += take;
      this.#bytes[this.#insertAt] = written + take;
      at += take;
    }
  }

  copy(from: number, length: number): void {
    this.#instructions++;
    this.#insertAt = -1;
    if (this.#copyLength > 0 && this.#copyFrom + this.#copyLength === from) {
      this.#copyLength += length;
      return;
    }
    this.#endCopy();
    this.#copyFrom = from;
    this.#copyLength = length;
  }

  finish(): Buffer | undefined {
    this.#endCopy();
    return this.isFull ? undefined : this.#bytes.subarray(0, this.#length);
  }

  #endCopy(): void {
    while (this.#copyLength > 0) {
      const length = Math.min(this.#copyLength, MAX_COPY_BYTES);
      this.#writeCopy(this.#copyFrom, length);
      this.#copyFrom += length;
      this.#copyLength -= length;
    }
  }

  #writeCopy(from: number, length: number): void {
    this.#reserve(8);
    const opAt = this.#length++;
    let op = 0x80;
    for (let byte = 0, rest = from; rest > 0; byte++, rest = Math.floor(rest / 256)) {
      if (rest % 256 === 0) continue;
      op |= 1 << byte;
      this.#bytes[this.#length++] = rest % 256;
    }
    for (let byte = 0, rest = length; rest > 0; byte++, rest >>>= 8) {
      if ((rest & 0xff) === 0) continue;
      op |= 0x10 << byte;
      this.#bytes[this.#length++] = rest & 0xff;
    }
    this.#bytes[opAt] = op;
  }

  #size(size: number): void {
    this.#reserve(8);
    let rest = size;
    for (; rest >= 128; rest = Math.floor(rest / 128)) this.#bytes[this.#length++] = (rest % 128) | 0x80;
    this.#bytes[this.#length++] = rest;
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + bytes));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}
