import { GitStoreError, corruptIn } from "../errors.ts";

const corrupt = corruptIn("corrupt_delta", "a delta");

/**
 * A delta holds two sizes, then instructions that copy from the base or insert bytes of the delta
 * (gitformat-pack, "Deltified representation").
 */

/** Copies of fewer bytes use a loop, because a call costs more than copying them (measured on Node 26). */
const LOOP_BYTES = 24;

/** The two sizes at the start of a delta. One instance is reused for many deltas. */
export class DeltaHeader {
  baseSize = 0;
  resultSize = 0;
  /** Offset of the first instruction. */
  end = 0;

  /** @throws {GitStoreError} `corrupt_delta` */
  decode(delta: Uint8Array, start: number, end: number): void {
    this.end = start;
    this.baseSize = this.#size(delta, end);
    this.resultSize = this.#size(delta, end);
  }

  #size(delta: Uint8Array, end: number): number {
    let size = 0;
    let factor = 1;
    for (;;) {
      if (this.end >= end) throw corrupt("it ends in its header");
      const byte = delta[this.end++]!;
      size += (byte & 0x7f) * factor;
      if (size > Number.MAX_SAFE_INTEGER) throw corrupt("a size beyond 2^53");
      if (byte < 0x80) return size;
      factor *= 128;
    }
  }
}

/** A delta, its base and the place of its result. Offsets and sizes are bytes. */
export interface DeltaInput {
  /** Decoded from the same delta. */
  readonly header: DeltaHeader;
  readonly delta: Buffer;
  readonly deltaEnd: number;
  readonly base: Buffer;
  readonly baseStart: number;
  readonly baseSize: number;
  /** Has room for `header.resultSize` bytes from `resultStart`. */
  readonly result: Buffer;
  readonly resultStart: number;
}

/**
 * Applies the instructions of a delta.
 *
 * @throws {GitStoreError} `delta_out_of_base`, `corrupt_delta`; the content of `result` is then undefined
 */
export function applyDelta({
  header,
  delta,
  deltaEnd,
  base,
  baseStart,
  baseSize,
  result,
  resultStart,
}: DeltaInput): void {
  if (header.baseSize !== baseSize) {
    throw new GitStoreError(
      "delta_out_of_base",
      `apply delta: made for a base of ${header.baseSize} bytes, not ${baseSize}`,
    );
  }
  const resultEnd = resultStart + header.resultSize;
  let at = header.end;
  let to = resultStart;
  while (at < deltaEnd) {
    const op = delta[at++]!;
    let from: number;
    let length: number;
    let source: Buffer;
    if (op & 0x80) {
      from = 0;
      length = 0;
      // Reading past the end gives undefined, which counts as 0 here; the check after it refuses the delta.
      if (op & 0x01) from = delta[at++]!;
      if (op & 0x02) from |= delta[at++]! << 8;
      if (op & 0x04) from |= delta[at++]! << 16;
      if (op & 0x08) from += delta[at++]! * 0x1000000;
      if (op & 0x10) length = delta[at++]!;
      if (op & 0x20) length |= delta[at++]! << 8;
      if (op & 0x40) length |= delta[at++]! << 16;
      if (at > deltaEnd) throw corrupt("it ends within a copy");
      if (length === 0) length = 0x10000;
      if (from + length > baseSize) {
        throw new GitStoreError(
          "delta_out_of_base",
          `apply delta: copies ${length} bytes from ${from} of a base of ${baseSize}`,
        );
      }
      from += baseStart;
      source = base;
    } else if (op === 0) {
      throw corrupt("opcode 0, which is reserved");
    } else {
      length = op;
      from = at;
      at += op;
      if (at > deltaEnd) throw corrupt("it ends within an insertion");
      source = delta;
    }
    if (to + length > resultEnd) throw corrupt("its instructions give more than its result size");
    if (length < LOOP_BYTES) {
      for (let i = 0; i < length; i++) result[to + i] = source[from + i]!;
    } else {
      source.copy(result, to, from, from + length);
    }
    to += length;
  }
  if (to !== resultEnd) throw corrupt("its instructions give less than its result size");
}
