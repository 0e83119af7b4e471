/**
 * Detects messages of a SHA-1 collision attack without knowing the other message: Stevens, "Counter-cryptanalysis"
 * (CRYPTO 2013). Every known attack ends in a block whose message differences follow one of a few disturbance vectors.
 * At a known step in its middle the two computations agree. So the differences of each vector are applied to the block,
 * and the computation is run backward and forward from that step. If it ends at the same chaining value, the block
 * belongs to a colliding pair.
 *
 * This code does not use the conditions that exclude most blocks early, so each block costs 33 times plain SHA-1 (about
 * 6 MB/s per core). It is an option for packs from untrusted sources.
 */
import { GitStoreError } from "./errors.ts";

const BLOCK_BYTES = 64;
const STEPS = 80;
const INITIAL = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0] as const;

/**
 * The vectors I(K,b) and II(K,b) in Manuel's notation ("Classification and generation of disturbance vectors for collision
 * attacks against SHA-1", 2011) that are close enough to an attack: the list of Stevens and Shumow ("Speeding up detection of
 * SHA-1 collision attacks using unavoidable attack conditions", USENIX Security 2017).
 */
const VECTORS: readonly (readonly [type: 1 | 2, k: number, b: number])[] = [
  ...[43, 44, 45, 46, 47, 48, 49, 50, 51, 52].map((k) => [1, k, 0] as const),
  ...[46, 47, 48, 49, 50, 51].map((k) => [1, k, 2] as const),
  ...[45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56].map((k) => [2, k, 0] as const),
  ...[46, 49, 50, 51].map((k) => [2, k, 2] as const),
];

interface Vector {
  /** XOR differences of the 80 expanded message words. */
  readonly differences: Int32Array;
  /** Number of steps after which both computations have the same state. */
  readonly agreesAfter: number;
}

const rotate = (word: number, bits: number): number => (word << bits) | (word >>> (32 - bits));

/** Computes the differences of a disturbance vector. Each disturbance is corrected over the next five steps. */
export function messageDifferences(type: 1 | 2, k: number, b: number): Int32Array {
  const start = -5;
  const disturbances = new Int32Array(STEPS - start);
  const at = (step: number): number => disturbances[step - start] ?? 0;
  const put = (step: number, word: number): void => void (disturbances[step - start] = word);
  if (type === 2) for (const step of [k + 1, k + 3]) put(step, rotate(1 << 31, b));
  put(k + 15, rotate(1, b));
  for (let step = k + 16; step < STEPS; step++) {
    put(step, rotate(at(step - 3) ^ at(step - 8) ^ at(step - 14) ^ at(step - 16), 1));
  }
  for (let step = k - 1; step >= start; step--) {
    put(step, rotate(at(step + 16), 31) ^ at(step + 13) ^ at(step + 8) ^ at(step + 2));
  }
  return Int32Array.from(
    { length: STEPS },
    (_, step) =>
      at(step) ^
      rotate(at(step - 1), 5) ^
      at(step - 2) ^
      rotate(at(step - 3), 30) ^
      rotate(at(step - 4), 30) ^
      rotate(at(step - 5), 30),
  );
}

/** Type I, and type II up to K = 49, have no disturbance in steps 53 to 57; the others have none in 60 to 64. */
const vectors: readonly Vector[] = VECTORS.map(([type, k, b]) => ({
  differences: messageDifferences(type, k, b),
  agreesAfter: type === 1 || k < 50 ? 58 : 65,
}));

/** Examines one message in pieces. One instance handles one message at a time. */
export class CollisionDetector {
  readonly #chain = new Int32Array(5);
  readonly #next = new Int32Array(5);
  readonly #words = new Int32Array(STEPS);
  readonly #other = new Int32Array(STEPS);
  /** The state before each step at which vectors agree, five words each. */
  readonly #states = new Map<number, Int32Array>(
    vectors.map(({ agreesAfter }) => [agreesAfter, new Int32Array(5)]),
  );
  readonly #tail = Buffer.alloc(BLOCK_BYTES);
  #tailBytes = 0;
  #length = 0;

  constructor() {
    this.#chain.set(INITIAL);
  }

  /** Tells whether a complete message contains a block of a collision attack. */
  static finds(message: Buffer): boolean {
    const detector = new CollisionDetector();
    return detector.update(message) || detector.end();
  }

  /** Adds the next piece. @returns whether it contains a block of an attack */
  update(piece: Buffer): boolean {
    this.#length += piece.length;
    let offset = 0;
    if (this.#tailBytes > 0) {
      offset = piece.copy(this.#tail, this.#tailBytes);
      this.#tailBytes += offset;
      if (this.#tailBytes < BLOCK_BYTES) return false;
      this.#tailBytes = 0;
      if (this.#block(this.#tail, 0)) return true;
    }
    for (; offset + BLOCK_BYTES <= piece.length; offset += BLOCK_BYTES) {
      if (this.#block(piece, offset)) return true;
    }
    this.#tailBytes = piece.copy(this.#tail, 0, offset);
    return false;
  }

  /** Adds the padding (FIPS 180-4, section 5.1.1). @returns as {@link update} */
  end(): boolean {
    const length = this.#length;
    const padding = Buffer.alloc(((119 - (length % BLOCK_BYTES)) % BLOCK_BYTES) + 9);
    padding[0] = 0x80;
    padding.writeBigUInt64BE(BigInt(length) * 8n, padding.length - 8);
    return this.update(padding);
  }

  /** The SHA-1 of the message after its end. Tests compare it with another implementation. */
  digest(): string {
    return [...this.#chain].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #block(bytes: Buffer, offset: number): boolean {
    const words = this.#words;
    for (let step = 0; step < 16; step++) words[step] = bytes.readInt32BE(offset + step * 4);
    for (let step = 16; step < STEPS; step++) {
      words[step] = rotate(words[step - 3]! ^ words[step - 8]! ^ words[step - 14]! ^ words[step - 16]!, 1);
    }
    this.#forward(words, this.#chain, this.#next);
    for (let index = 0; index < 5; index++) this.#next[index] = this.#chain[index]! + this.#next[index]!;
    const found = vectors.some((vector) => this.#collidesBy(vector));
    this.#chain.set(this.#next);
    return found;
  }

  #collidesBy({ differences, agreesAfter }: Vector): boolean {
    const other = this.#other;
    for (let step = 0; step < STEPS; step++) other[step] = this.#words[step]! ^ differences[step]!;
    const state = this.#states.get(agreesAfter);
    if (state === undefined) return false;
    before.set(state);
    undo(other, agreesAfter, before);
    after.set(state);
    run(other, agreesAfter, STEPS, after);
    for (let index = 0; index < 5; index++) {
      if (((before[index]! + after[index]!) | 0) !== this.#next[index]) return false;
    }
    return true;
  }

  /** Runs the steps of a block, and keeps the states at which vectors agree. */
  #forward(words: Int32Array, from: Int32Array, to: Int32Array): void {
    to.set(from);
    let step = 0;
    for (const [agreesAfter, state] of this.#states) {
      run(words, step, agreesAfter, to);
      state.set(to);
      step = agreesAfter;
    }
    run(words, step, STEPS, to);
  }
}

const before = new Int32Array(5);
const after = new Int32Array(5);

/** Runs steps `first` to `last` (exclusive) on a state. One loop for each function of FIPS 180-4, section 4.1.1. */
function run(words: Int32Array, first: number, last: number, state: Int32Array): void {
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
function undo(words: Int32Array, last: number, state: Int32Array): void {
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
/** @throws GitStoreError `hash_collision` if the message (header and content of an object) belongs to an attack */
export function refuseCollision(message: Buffer): void {
  if (CollisionDetector.finds(message)) throw collisionFound();
}

export function collisionFound(): GitStoreError {
  return new GitStoreError("hash_collision", "an object belongs to a SHA-1 collision attack");
}
