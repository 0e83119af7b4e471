/**
 * SHA-1 (FIPS 180-4) with the filter of unavoidable conditions, as a WebAssembly function.
 *
 * Four blocks at a time are expanded and tested against the conditions, one in each lane of the vectors. Then each is compressed. Blocks
 * that meet all conditions of a disturbance vector are noted: they must be examined. That is about one of 20.
 */
import { STEPS } from "./disturbance-vectors.ts";
import { UNAVOIDABLE_CONDITIONS } from "./unavoidable-conditions.ts";
import { encodeModule, FunctionBody, I32, V128 } from "./wasm-code.ts";

export const BLOCK_BYTES = 64;
/** The maximum number of blocks of one call. */
export const MAX_BLOCKS = 1024;

/** The layout of the memory, in bytes. */
export const LAYOUT = {
  /** The chaining value: five words. */
  chain: 0,
  /** The sets of vectors whose conditions the four blocks of a group meet. */
  possible: 32,
  /** The set of vectors of each condition, four times. */
  sets: 64,
  /** The expanded words of four blocks with the round constants added, word by word. */
  schedule: 4096,
  /** For each noted block {@link SUSPECT_BYTES}: its number, its set of vectors, and the chaining value before it. */
  suspects: 8192,
  /** The blocks. */
  input: 65_536,
} as const;
export const SUSPECT_BYTES = 32;
/** One page more than the blocks need: the last four lanes can begin in the last block. */
const PAGES = 3;

/** The constants of FIPS 180-4, section 4.2.1, for each 20 steps. */
const ROUND_CONSTANTS = [0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6] as const;

/**
 * Encodes the module. Its function `run(blocks)` compresses that many blocks of the input into the chaining value. It returns the number
 * of noted blocks.
 */
export function encodeSha1Module(): Uint8Array<ArrayBuffer> {
  const body = new FunctionBody(1);
  const blocks = 0;
  /** The number of the block, the offset of its group of four, and its lane there in bytes. */
  const [at, group, lane] = [body.local(I32), body.local(I32), body.local(I32)];
  /** The number of noted blocks. */
  const suspects = body.local(I32);
  const words = Array.from({ length: STEPS }, () => body.local(V128));
  const state = Array.from({ length: 5 }, () => body.local(I32));
  const chain = Array.from({ length: 5 }, () => body.local(I32));
  chain.forEach((word, index) =>
    body
      .constant(0)
      .load(LAYOUT.chain + index * 4)
      .set(word),
  );
  body.repeat(() => {
    loadWords(body, group, words);
    expand(body, words);
    testConditions(body, words);
    body.constant(0).set(lane);
    body.repeat(() => {
      noteSuspect(body, { at, lane, suspects, chain });
      compress(body, { lane, state, chain });
      body.get(at).constant(1).do("i32.add").set(at);
      // Ends after four lanes, or after the last block.
      body.get(lane).constant(4).do("i32.add").tee(lane).constant(16).do("i32.lt_u");
      body.get(at).get(blocks).do("i32.lt_u", "i32.and");
    });
    body
      .get(group)
      .constant(4 * BLOCK_BYTES)
      .do("i32.add")
      .set(group);
    body.get(at).get(blocks).do("i32.lt_u");
  });
  chain.forEach((word, index) =>
    body
      .constant(0)
      .get(word)
      .store(LAYOUT.chain + index * 4),
  );
  body.get(suspects);
  return encodeModule({ parameters: 1, body, pages: PAGES, data: conditionSets() });
}

/** Reads 16 words of four blocks, and gives each word of all blocks a vector. */
function loadWords(body: FunctionBody, group: number, words: readonly number[]): void {
  const swapped = [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12];
  const low = lanes(0, 4, 1, 5);
  const high = lanes(2, 6, 3, 7);
  const firstHalves = lanes(0, 1, 4, 5);
  const secondHalves = lanes(2, 3, 6, 7);
  const four = Array.from({ length: 4 }, () => body.local(V128));
  const mixed = Array.from({ length: 4 }, () => body.local(V128));
  for (let first = 0; first < 16; first += 4) {
    four.forEach((local, block) => {
      body
        .get(group)
        .loadVector(LAYOUT.input + block * BLOCK_BYTES + first * 4)
        .tee(local)
        .get(local);
      body.shuffle(swapped).set(local);
    });
    const [a, b, c, d] = four as [number, number, number, number];
    const [ab, cd, abHigh, cdHigh] = mixed as [number, number, number, number];
    body.get(a).get(b).shuffle(low).set(ab).get(c).get(d).shuffle(low).set(cd);
    body.get(a).get(b).shuffle(high).set(abHigh).get(c).get(d).shuffle(high).set(cdHigh);
    body.get(ab).get(cd).shuffle(firstHalves).set(words[first]!);
    body
      .get(ab)
      .get(cd)
      .shuffle(secondHalves)
      .set(words[first + 1]!);
    body
      .get(abHigh)
      .get(cdHigh)
      .shuffle(firstHalves)
      .set(words[first + 2]!);
    body
      .get(abHigh)
      .get(cdHigh)
      .shuffle(secondHalves)
      .set(words[first + 3]!);
  }
}

/** The bytes of four 32-bit lanes, of the eight lanes of two vectors. */
function lanes(...numbers: readonly number[]): number[] {
  return numbers.flatMap((lane) => [0, 1, 2, 3].map((byte) => lane * 4 + byte));
}

/** Expands the words, and stores them with the round constants added. */
function expand(body: FunctionBody, words: readonly number[]): void {
  const constant = body.local(V128);
  const mixed = body.local(V128);
  for (let step = 0; step < STEPS; step++) {
    if (step % 20 === 0)
      body
        .constant(ROUND_CONSTANTS[step / 20]!)
        .do("i32x4.splat")
        .set(constant);
    if (step >= 16) {
      body
        .get(words[step - 3]!)
        .get(words[step - 8]!)
        .do("v128.xor");
      body
        .get(words[step - 14]!)
        .get(words[step - 16]!)
        .do("v128.xor", "v128.xor")
        .set(mixed);
      body.get(mixed).get(mixed).do("i32x4.add").get(mixed).constant(31).do("i32x4.shr_u", "v128.or");
      body.set(words[step]!);
    }
    body
      .constant(0)
      .get(words[step]!)
      .get(constant)
      .do("i32x4.add")
      .storeVector(LAYOUT.schedule + step * 16);
  }
}

/** Removes the vectors of each condition that a block does not meet from the set of its lane, and stores the sets. */
function testConditions(body: FunctionBody, words: readonly number[]): void {
  const possible = body.local(V128);
  body.constant(-1).do("i32x4.splat").set(possible);
  for (const [index, { word, bit, otherWord, otherBit, isEqual }] of UNAVOIDABLE_CONDITIONS.entries()) {
    body
      .get(possible)
      .constant(0)
      .loadVector(LAYOUT.sets + index * 16);
    const topBit = (at: number): void => void (at < 31 && body.constant(31 - at).do("i32x4.shl"));
    body.get(words[word]!);
    if (bit !== otherBit) topBit(bit);
    body.get(words[otherWord]!);
    if (bit !== otherBit) topBit(otherBit);
    body.do("v128.xor");
    if (bit === otherBit) topBit(bit);
    // All bits of the lane: whether the two bits differ.
    body
      .constant(31)
      .do("i32x4.shr_s", isEqual ? "v128.and" : "v128.andnot", "v128.andnot")
      .set(possible);
  }
  body.constant(0).get(possible).storeVector(LAYOUT.possible);
}

/** Notes a block if the set of its lane is not empty. */
function noteSuspect(
  body: FunctionBody,
  locals: {
    readonly at: number;
    readonly lane: number;
    readonly suspects: number;
    readonly chain: readonly number[];
  },
): void {
  const { at, lane, suspects, chain } = locals;
  const place = body.local(I32);
  const set = body.local(I32);
  body.get(lane).load(LAYOUT.possible).tee(set);
  body.when(() => {
    body.get(suspects).constant(Math.log2(SUSPECT_BYTES)).do("i32.shl").set(place);
    [at, set, ...chain].forEach((value, index) => {
      body
        .get(place)
        .get(value)
        .store(LAYOUT.suspects + index * 4);
    });
    body.get(suspects).constant(1).do("i32.add").set(suspects);
  });
}

/** Compresses the block of a lane: 80 steps, each with one function of FIPS 180-4, section 4.1.1. */
function compress(
  body: FunctionBody,
  locals: { readonly lane: number; readonly state: readonly number[]; readonly chain: readonly number[] },
): void {
  const { lane, state, chain } = locals;
  state.forEach((local, index) => body.get(chain[index]!).set(local));
  for (let step = 0; step < STEPS; step++) {
    // The roles of the five words move on by one with each step.
    const [a, b, c, d, e] = [0, 1, 2, 3, 4].map((role) => state[(role + 4 * step) % 5]!) as [
      number,
      number,
      number,
      number,
      number,
    ];
    body
      .get(lane)
      .load(LAYOUT.schedule + step * 16)
      .get(e)
      .do("i32.add");
    if (step < 20) body.get(c).get(d).do("i32.xor").get(b).do("i32.and").get(d).do("i32.xor", "i32.add");
    else if (step < 40 || step >= 60) body.get(b).get(c).do("i32.xor").get(d).do("i32.xor", "i32.add");
    else {
      body.get(b).get(c).do("i32.and", "i32.add");
      body.get(b).get(c).do("i32.xor").get(d).do("i32.and", "i32.add");
    }
    body.get(a).constant(5).do("i32.rotl", "i32.add").set(e);
    body.get(b).constant(30).do("i32.rotl").set(b);
  }
  // After 80 steps, a multiple of five, the roles are where they began.
  chain.forEach((local, index) => body.get(local).get(state[index]!).do("i32.add").set(local));
}

function conditionSets(): Uint8Array {
  const memory = new Uint32Array(LAYOUT.schedule / 4);
  for (const [index, { vectors }] of UNAVOIDABLE_CONDITIONS.entries()) {
    memory.fill(vectors, LAYOUT.sets / 4 + index * 4, LAYOUT.sets / 4 + index * 4 + 4);
  }
  return new Uint8Array(memory.buffer);
}
