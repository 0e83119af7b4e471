import { corruptIn } from "../errors.ts";

const corrupt = corruptIn("corrupt_index", "an EWAH bitmap");

/**
 * EWAH, the run-length encoding of bitmaps in git's `.bitmap` files (gitformat-bitmap, appendix A).
 *
 * Serialised: 4 bytes number of bits, 4 bytes number of 64-bit words, the words, 4 bytes position of the last marker
 * word; all big-endian. A marker word holds, from its lowest bit: 1 bit value of a run, 32 bits length of that run in
 * words, 31 bits count of the literal words that follow it.
 *
 * In memory a bitmap is a `Uint32Array`, bit `i` in element `i >>> 5` at `i & 31`; one EWAH word is two elements.
 */
const MAX_RUN = 0xffff_ffff;
const MAX_LITERALS = 0x7fff_ffff;
/** Bytes before and after the words: two counts before, one position after. */
const FRAME_BYTES = 12;

/** Maximum bytes of the encoding buffer that is kept for the next bitmap: enough for 4 million objects. */
const MAX_SCRATCH_BYTES = 1024 * 1024;
let scratch = Buffer.alloc(0);

/** Operation that combines a decoded word with the content of the target. */
export type EwahCombine = "or" | "xor";

/** Number of elements of a bitmap with `bits` bits, rounded up to complete EWAH words. */
export function bitmapLength(bits: number): number {
  return Math.ceil(bits / 64) * 2;
}

/**
 * Decodes one EWAH bitmap into `target`.
 *
 * @param offset start in `bytes`
 * @returns the offset after it
 * @throws GitStoreError `corrupt_index` if it does not fit in `bytes` or in `target`
 */
export function decodeEwah(
  bytes: Uint8Array,
  offset: number,
  target: Uint32Array,
  combine: EwahCombine = "or",
): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = ewahEnd(view, offset);
  let at = offset + 8;
  const wordsEnd = end - 4;
  let word = 0;
  while (at < wordsEnd) {
    const high = view.getUint32(at);
    const low = view.getUint32(at + 4);
    at += 8;
    const run = (low >>> 1) + (high & 1) * 0x8000_0000;
    const literals = high >>> 1;
    if (run > 0) {
      if ((low & 1) === 1) {
        if ((word + run) * 2 > target.length) throw corrupt("a run reaches beyond the objects");
        fillOnes(target, word * 2, (word + run) * 2, combine);
      }
      word += run;
    }
    if (at + literals * 8 > wordsEnd) throw corrupt("literal words are missing");
    if (literals > 0 && (word + literals) * 2 > target.length)
      throw corrupt("words reach beyond the objects");
    for (let i = 0; i < literals; i++, at += 8, word++) {
      const index = word * 2;
      if (combine === "or") {
        target[index] = (target[index] ?? 0) | view.getUint32(at + 4);
        target[index + 1] = (target[index + 1] ?? 0) | view.getUint32(at);
      } else {
        target[index] = (target[index] ?? 0) ^ view.getUint32(at + 4);
        target[index + 1] = (target[index + 1] ?? 0) ^ view.getUint32(at);
      }
    }
  }
  return end;
}

/** Returns the offset after the EWAH bitmap that starts at `offset`, without decoding it. */
export function skipEwah(bytes: Uint8Array, offset: number): number {
  return ewahEnd(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset);
}

/**
 * Encodes the first `bits` bits of a bitmap in git's format. The memory of the result is as large as its length.
 *
 * @param bitmap at least {@link bitmapLength} elements; bits beyond `bits` must be 0
 */
export function encodeEwah(bitmap: Uint32Array, bits: number): Buffer {
  const words = Math.ceil(bits / 64);
  // Literals are copied. A marker covers one change between run and literals, so there are at most words + 1 markers.
  const worst = FRAME_BYTES + (2 * words + 1) * 8;
  const out = scratch.length >= worst ? scratch : Buffer.allocUnsafeSlow(worst);
  if (worst <= MAX_SCRATCH_BYTES) scratch = out;
  out.writeUInt32BE(bits, 0);
  let at = 8;
  let marker = at;
  let word = 0;
  do {
    marker = at;
    at += 8;
    const bit = isOnes(bitmap, word) ? 1 : 0;
    const runStart = word;
    while (
      word < words &&
      word - runStart < MAX_RUN &&
      (bit === 1 ? isOnes(bitmap, word) : isZero(bitmap, word))
    )
      word++;
    const run = word - runStart;
    const literalStart = word;
    while (
      word < words &&
      word - literalStart < MAX_LITERALS &&
      !isZero(bitmap, word) &&
      !isOnes(bitmap, word)
    ) {
      out.writeUInt32BE(bitmap[word * 2 + 1] ?? 0, at);
      out.writeUInt32BE(bitmap[word * 2] ?? 0, at + 4);
      at += 8;
      word++;
    }
    const literals = word - literalStart;
    out.writeUInt32BE(((literals << 1) | (run >= 0x8000_0000 ? 1 : 0)) >>> 0, marker);
    out.writeUInt32BE(((run << 1) | bit) >>> 0, marker + 4);
  } while (word < words);
  out.writeUInt32BE((at - 8) / 8, 4);
  out.writeUInt32BE((marker - 8) / 8, at);
  // Copied, so that a stored bitmap does not keep a buffer of worst-case size.
  return Buffer.from(out.subarray(0, at + 4));
}

function ewahEnd(view: DataView, offset: number): number {
  if (offset + FRAME_BYTES > view.byteLength) throw corrupt("it is cut short");
  const end = offset + FRAME_BYTES + view.getUint32(offset + 4) * 8;
  if (end > view.byteLength) throw corrupt("it is cut short");
  return end;
}

function fillOnes(target: Uint32Array, from: number, to: number, combine: EwahCombine): void {
  if (combine === "or") target.fill(0xffff_ffff, from, to);
  else for (let i = from; i < to; i++) target[i] = ~(target[i] ?? 0);
}

function isZero(bitmap: Uint32Array, word: number): boolean {
  return bitmap[word * 2] === 0 && bitmap[word * 2 + 1] === 0;
}

function isOnes(bitmap: Uint32Array, word: number): boolean {
  return bitmap[word * 2] === 0xffff_ffff && bitmap[word * 2 + 1] === 0xffff_ffff;
}
