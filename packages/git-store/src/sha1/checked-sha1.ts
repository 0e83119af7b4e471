/**
 * SHA-1 that refuses messages of a collision attack. Every block is compressed and filtered by the code of {@link encodeSha1Module}; the
 * few blocks that the filter notes are examined by {@link collides}.
 */
import { GitStoreError } from "../errors.ts";
import { collides, expandWords, runSteps } from "./recompress.ts";
import { BLOCK_BYTES, encodeSha1Module, LAYOUT, MAX_BLOCKS, SUSPECT_BYTES } from "./sha1-module.ts";
import { STEPS } from "./disturbance-vectors.ts";
import { possibleVectors } from "./unavoidable-conditions.ts";
import { compileModule, type WasmInstance } from "./wasm-runtime.ts";

/** The first chaining value (FIPS 180-4, section 5.3.1). */
const INITIAL = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0] as const;
const MAX_BYTES = MAX_BLOCKS * BLOCK_BYTES;
const DIGEST_BYTES = 20;

/** Compresses the blocks of the input in the memory of {@link LAYOUT}. @returns the number of noted blocks */
type Compress = (blocks: number) => number;

/** Computes the SHA-1 of one message after the other. It keeps 192 KiB of memory. */
export class CheckedSha1 {
  readonly #memory: Buffer;
  readonly #compress: Compress;
  readonly #chain: Int32Array;
  readonly #words = new Int32Array(STEPS);
  readonly #chainBefore = new Int32Array(5);
  /** Bytes of the message that are in the input, and not compressed yet. */
  #waiting = 0;
  #length = 0;

  /** @param options `isPlain` chooses plain code, as for a processor without vectors. It is much slower. */
  constructor(options: { readonly isPlain?: boolean } = {}) {
    const instance = options.isPlain === true ? undefined : vectorInstance();
    this.#memory = Buffer.from(instance?.memory ?? new ArrayBuffer(LAYOUT.input + MAX_BYTES));
    this.#compress = instance?.run ?? ((blocks) => compressPlainly(this.#memory, blocks));
    this.#chain = wordsAt(this.#memory, LAYOUT.chain);
    this.begin();
  }

  /**
   * Adds the next piece of the message.
   *
   * @throws {GitStoreError} `hash_collision` if it contains a block of an attack
   */
  update(piece: Uint8Array): void {
    this.#length += piece.length;
    for (let from = 0; from < piece.length;) {
      const bytes = Math.min(piece.length - from, MAX_BYTES - this.#waiting);
      this.#memory.set(piece.subarray(from, from + bytes), LAYOUT.input + this.#waiting);
      from += bytes;
      this.#waiting += bytes;
      if (this.#waiting === MAX_BYTES) this.#run(MAX_BLOCKS);
    }
  }

  /**
   * Ends the message, and writes its 20 bytes of digest to `target`. The next update begins another message.
   *
   * @throws {GitStoreError} as {@link update}
   */
  digestInto(target: Uint8Array, start: number): void {
    const memory = this.#memory;
    // The padding of FIPS 180-4, section 5.1.1: a byte, zeros, and the length in bits.
    if (this.#waiting + 9 > MAX_BYTES) this.#run(Math.floor(this.#waiting / BLOCK_BYTES));
    const blocks = Math.ceil((this.#waiting + 9) / BLOCK_BYTES);
    const padding = LAYOUT.input + this.#waiting;
    const end = LAYOUT.input + blocks * BLOCK_BYTES;
    memory[padding] = 0x80;
    memory.fill(0, padding + 1, end - 8);
    memory.writeUInt32BE(Math.floor(this.#length / 2 ** 29), end - 8);
    memory.writeUInt32BE((this.#length * 8) >>> 0, end - 4);
    this.#waiting = 0;
    this.#run(blocks);
    for (let index = 0; index < DIGEST_BYTES; index++) {
      target[start + index] = this.#chain[index >> 2]! >>> (24 - 8 * (index & 3));
    }
    this.begin();
  }

  /** Begins another message, and forgets one that was not ended. */
  begin(): void {
    this.#chain.set(INITIAL);
    this.#waiting = 0;
    this.#length = 0;
  }

  /** Compresses whole blocks, and keeps the rest of the input. */
  #run(blocks: number): void {
    const suspects = this.#compress(blocks);
    for (let index = 0; index < suspects; index++) this.#examine(LAYOUT.suspects + index * SUSPECT_BYTES);
    const rest = this.#waiting - blocks * BLOCK_BYTES;
    if (rest > 0)
      this.#memory.copyWithin(
        LAYOUT.input,
        LAYOUT.input + blocks * BLOCK_BYTES,
        LAYOUT.input + this.#waiting,
      );
    this.#waiting = Math.max(rest, 0);
  }

  #examine(place: number): void {
    const memory = this.#memory;
    const words = this.#words;
    readBlock(memory, memory.readInt32LE(place), words);
    for (let index = 0; index < 5; index++)
      this.#chainBefore[index] = memory.readInt32LE(place + 8 + index * 4);
    if (!collides(words, this.#chainBefore, memory.readInt32LE(place + 4))) return;
    this.begin();
    throw new GitStoreError("hash_collision", "an object belongs to a SHA-1 collision attack");
  }
}

let makeInstance: (() => WasmInstance) | undefined | "unknown" = "unknown";

/** The code for this processor. @returns undefined if it has no vectors of 128 bits */
function vectorInstance(): WasmInstance | undefined {
  if (makeInstance === "unknown") makeInstance = compileModule(encodeSha1Module());
  return makeInstance?.();
}

function wordsAt(memory: Buffer, offset: number): Int32Array {
  return new Int32Array(memory.buffer, memory.byteOffset + offset, 5);
}

function readBlock(memory: Buffer, block: number, words: Int32Array): void {
  const start = LAYOUT.input + block * BLOCK_BYTES;
  for (let step = 0; step < 16; step++) words[step] = memory.readInt32BE(start + step * 4);
  expandWords(words);
}

/** Does the same as {@link encodeSha1Module}'s code. */
function compressPlainly(memory: Buffer, blocks: number): number {
  const words = new Int32Array(STEPS);
  const chain = wordsAt(memory, LAYOUT.chain);
  const state = new Int32Array(5);
  let suspects = 0;
  for (let block = 0; block < blocks; block++) {
    readBlock(memory, block, words);
    const possible = possibleVectors(words);
    if (possible !== 0) {
      const place = LAYOUT.suspects + suspects * SUSPECT_BYTES;
      memory.writeInt32LE(block, place);
      memory.writeInt32LE(possible, place + 4);
      chain.forEach((word, index) => memory.writeInt32LE(word, place + 8 + index * 4));
      suspects++;
    }
    state.set(chain);
    runSteps(words, 0, STEPS, state);
    for (let index = 0; index < 5; index++) chain[index] = chain[index]! + state[index]!;
  }
  return suspects;
}
