/**
 * Tells whether a block belongs to a colliding pair, without knowing the other block: Stevens, "Counter-cryptanalysis" (CRYPTO 2013).
 * The differences of a disturbance vector are applied to the block. At a known step both computations agree, so the other one is run
 * backward and forward from the state there. If it ends at the same chaining value, the block belongs to such a pair.
 */
import { DISTURBANCE_VECTORS, rotate, STEPS, type DisturbanceVector } from "./disturbance-vectors.ts";

/** Fills the words 16 to 79 of the expanded message (FIPS 180-4, section 6.1.2). */
export function expandWords(words: Int32Array): void {
  for (let step = 16; step < STEPS; step++) {
    words[step] = rotate(words[step - 3]! ^ words[step - 8]! ^ words[step - 14]! ^ words[step - 16]!, 1);
  }
}

/**
 * Tells whether a block belongs to a colliding pair by one of `vectors`.
 *
 * @param words the expanded message, 80 words
 * @param chain the chaining value before the block, five words
 * @param vectors a set of the disturbance vectors, see {@link DISTURBANCE_VECTORS}
 */
export function collides(words: Int32Array, chain: Int32Array, vectors: number): boolean {
  let reached = 0;
  chainAfter.set(chain);
  for (const [agreesAfter, state] of agreements) {
    runSteps(words, reached, agreesAfter, chainAfter);
    state.set(chainAfter);
    reached = agreesAfter;
  }
  runSteps(words, reached, STEPS, chainAfter);
  for (let index = 0; index < 5; index++) chainAfter[index] = chainAfter[index]! + chain[index]!;
  for (let rest = vectors; rest !== 0; rest &= rest - 1) {
    const vector = DISTURBANCE_VECTORS[31 - Math.clz32(rest & -rest)]!;
    if (collidesBy(vector, words)) return true;
  }
  return false;
}

/** The state after each number of steps at which vectors agree, lowest number first. */
const agreements = new Map<number, Int32Array>(
  DISTURBANCE_VECTORS.map(({ agreesAfter }) => agreesAfter)
    .toSorted((a, b) => a - b)
    .map((agreesAfter) => [agreesAfter, new Int32Array(5)]),
);
/** The chaining value after the block. */
const chainAfter = new Int32Array(5);
const other = new Int32Array(STEPS);
const before = new Int32Array(5);
const after = new Int32Array(5);

function collidesBy({ differences, agreesAfter }: DisturbanceVector, words: Int32Array): boolean {
  for (let step = 0; step < STEPS; step++) other[step] = words[step]! ^ differences[step]!;
  const state = agreements.get(agreesAfter)!;
  before.set(state);
  undoSteps(other, agreesAfter, before);
  after.set(state);
  runSteps(other, agreesAfter, STEPS, after);
  for (let index = 0; index < 5; index++) {
    if (((before[index]! + after[index]!) | 0) !== chainAfter[index]) return false;
  }
  return true;
}

/** Runs steps `first` to `last` (exclusive) on a state. One loop for each function of FIPS 180-4, section 4.1.1. */
export function runSteps(words: Int32Array, first: number, last: number, state: Int32Array): void {
  let a = state[0]!;
  let b = state[1]!;
  let c = state[2]!;
  let d = state[3]!;
  let e = state[4]!;
  let step = first;
  for (const end = Math.min(last, 20); step < end; step++) {
    const next = (((a << 5) | (a >>> 27)) + ((b & c) | (~b & d)) + e + 0x5a827999 + words[step]!) | 0;
    e = d;
    d = c;
    c = (b << 30) | (b >>> 2);
    b = a;
    a = next;
  }
  for (const end = Math.min(last, 40); step < end; step++) {
    const next = (((a << 5) | (a >>> 27)) + (b ^ c ^ d) + e + 0x6ed9eba1 + words[step]!) | 0;
    e = d;
    d = c;
    c = (b << 30) | (b >>> 2);
    b = a;
    a = next;
  }
  for (const end = Math.min(last, 60); step < end; step++) {
    const next =
      (((a << 5) | (a >>> 27)) + ((b & c) | (b & d) | (c & d)) + e - 0x70e44324 + words[step]!) | 0;
    e = d;
    d = c;
    c = (b << 30) | (b >>> 2);
    b = a;
    a = next;
  }
  for (; step < last; step++) {
    const next = (((a << 5) | (a >>> 27)) + (b ^ c ^ d) + e - 0x359d3e2a + words[step]!) | 0;
    e = d;
    d = c;
    c = (b << 30) | (b >>> 2);
    b = a;
    a = next;
  }
  state[0] = a;
  state[1] = b;
  state[2] = c;
  state[3] = d;
  state[4] = e;
}

/** Undoes all steps below `last`. */
function undoSteps(words: Int32Array, last: number, state: Int32Array): void {
  let a = state[0]!;
  let b = state[1]!;
  let c = state[2]!;
  let d = state[3]!;
  let e = state[4]!;
  for (let step = last - 1; step >= 0; step--) {
    const result = a;
    a = b;
    b = (c << 2) | (c >>> 30);
    c = d;
    d = e;
    const rest = (result - ((a << 5) | (a >>> 27)) - words[step]!) | 0;
    if (step >= 60) e = (rest - (b ^ c ^ d) + 0x359d3e2a) | 0;
    else if (step >= 40) e = (rest - ((b & c) | (b & d) | (c & d)) + 0x70e44324) | 0;
    else if (step >= 20) e = (rest - (b ^ c ^ d) - 0x6ed9eba1) | 0;
    else e = (rest - ((b & c) | (~b & d)) - 0x5a827999) | 0;
  }
  state[0] = a;
  state[1] = b;
  state[2] = c;
  state[3] = d;
  state[4] = e;
}
