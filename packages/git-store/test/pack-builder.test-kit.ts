import { createHash } from "node:crypto";
import { deflateSync } from "node:zlib";
import type { ObjectFormat } from "@devplat/git-protocol";
import { hashObject, type ObjectType } from "../src/object-format.ts";
import { OFS_DELTA, REF_DELTA, typeNumber } from "../src/object-format.ts";
import { encodeBaseDistance, encodePackHeader, encodeTypeAndSize } from "../src/pack/pack-entry.ts";
import { randomFrom } from "@devplat/testkit/random";

/** Builds valid and invalid packs. Offsets are those of the finished pack. */
export class PackBuilder {
  readonly format: ObjectFormat;
  readonly #parts: Buffer[] = [];
  #count = 0;
  offset = 12;

  constructor(format: ObjectFormat = "sha1") {
    this.format = format;
  }

  /** @returns the entry's offset */
  raw(bytes: Buffer): number {
    const at = this.offset;
    this.#parts.push(bytes);
    this.offset += bytes.length;
    this.#count++;
    return at;
  }

  object(type: ObjectType, content: Buffer | string, level = 6): number {
    const bytes = Buffer.from(content);
    return this.raw(
      Buffer.concat([entryHeader(typeNumber(type), bytes.length), deflateSync(bytes, { level })]),
    );
  }

  ofsDelta(base: number, delta: Buffer): number {
    const distance = Buffer.alloc(10);
    const end = encodeBaseDistance(distance, 0, this.offset - base);
    return this.raw(
      Buffer.concat([entryHeader(OFS_DELTA, delta.length), distance.subarray(0, end), deflateSync(delta)]),
    );
  }

  refDelta(baseOid: string, delta: Buffer): number {
    return this.raw(
      Buffer.concat([entryHeader(REF_DELTA, delta.length), Buffer.from(baseOid, "hex"), deflateSync(delta)]),
    );
  }

  /** @param count number of objects in the header; default the real number */
  finish(count: number = this.#count): Buffer {
    const body = Buffer.concat([encodePackHeader(count), ...this.#parts]);
    return Buffer.concat([body, createHash(this.format).update(body).digest()]);
  }
}

/** Returns incompressible bytes, equal in each call. */
export function noiseOf(length: number): Buffer {
  const random = randomFrom(length);
  return Buffer.from(Uint8Array.from({ length }, () => Math.floor(random() * 256)));
}

/** The header of an entry. */
export function entryHeader(type: number, size: number): Buffer {
  const bytes = Buffer.alloc(10);
  return bytes.subarray(0, encodeTypeAndSize(bytes, 0, type, size));
}

/** Corrects the trailer of a pack after its bytes were changed. */
export function reseal(pack: Buffer, format: ObjectFormat = "sha1"): Buffer {
  const length = format === "sha1" ? 20 : 32;
  const body = pack.subarray(0, pack.length - length);
  return Buffer.concat([body, createHash(format).update(body).digest()]);
}

/** One instruction of a delta. */
export type DeltaOp =
  | { readonly copy: readonly [from: number, length: number] }
  | { readonly insert: Buffer };

/** Encodes a delta with these instructions and sizes. They may be inconsistent. */
export function encodeDelta(baseSize: number, resultSize: number, ops: readonly DeltaOp[]): Buffer {
  const parts = [sizeVarint(baseSize), sizeVarint(resultSize)];
  for (const op of ops) {
    if ("insert" in op) {
      for (let at = 0; at < op.insert.length; at += 127) {
        const piece = op.insert.subarray(at, at + 127);
        parts.push(Buffer.from([piece.length]), piece);
      }
    } else {
      let [from, left] = op.copy;
      while (left > 0) {
        const length = Math.min(left, 0xffffff);
        parts.push(copyOp(from, length));
        from += length;
        left -= length;
      }
    }
  }
  return Buffer.concat(parts);
}

/** Encodes a delta from `base` to `result` that copies their common start and end. */
export function simpleDelta(base: Buffer, result: Buffer): Buffer {
  const shorter = Math.min(base.length, result.length);
  let start = 0;
  while (start < shorter && base[start] === result[start]) start++;
  let tail = 0;
  while (tail < shorter - start && base[base.length - 1 - tail] === result[result.length - 1 - tail]) tail++;
  return encodeDelta(base.length, result.length, [
    { copy: [0, start] },
    { insert: result.subarray(start, result.length - tail) },
    { copy: [base.length - tail, tail] },
  ]);
}

/** The id of a blob. */
export function blobOid(content: Buffer | string, format: ObjectFormat = "sha1"): string {
  return hashObject(format, "blob", Buffer.from(content));
}

function sizeVarint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  do {
    const next = Math.floor(rest / 128);
    bytes.push((rest % 128) | (next > 0 ? 0x80 : 0));
    rest = next;
  } while (rest > 0);
  return Buffer.from(bytes);
}

function copyOp(from: number, length: number): Buffer {
  const bytes: number[] = [0x80];
  for (let i = 0; i < 4; i++) {
    const byte = Math.floor(from / 256 ** i) % 256;
    if (byte !== 0) {
      bytes[0]! |= 1 << i;
      bytes.push(byte);
    }
  }
  // 65536 is encoded by omitting the size.
  const written = length === 0x10000 ? 0 : length;
  for (let i = 0; i < 3; i++) {
    const byte = (written >> (8 * i)) & 255;
    if (byte !== 0) {
      bytes[0]! |= 0x10 << i;
      bytes.push(byte);
    }
  }
  return Buffer.from(bytes);
}
