/**
 * The disturbance vectors that known attacks on SHA-1 can use, in the notation of Manuel ("Classification and generation of disturbance
 * vectors for collision attacks against SHA-1", 2011). A vector fixes the XOR differences of all message words of a colliding pair.
 */

/** The number of steps of SHA-1 for each block, and so of expanded message words. */
export const STEPS = 80;

/** The vector I(K,b) or II(K,b). */
export interface DisturbanceVector {
  readonly type: 1 | 2;
  readonly k: number;
  readonly b: number;
  /** XOR differences of the 80 expanded message words. */
  readonly differences: Int32Array;
  /** The number of steps after which both computations of a pair have the same state. */
  readonly agreesAfter: number;
}

/**
 * The vectors that are close enough to an attack: the list of Stevens and Shumow ("Speeding up detection of SHA-1 collision attacks using
 * unavoidable attack conditions", USENIX Security 2017), ordered by type, K and b. A set of vectors is a number whose bit i stands for
 * the vector i.
 */
export const DISTURBANCE_VECTORS: readonly DisturbanceVector[] = [
  ...range(43, 52).map((k) => vector(1, k, 0)),
  ...range(46, 51).map((k) => vector(1, k, 2)),
  ...range(45, 56).map((k) => vector(2, k, 0)),
  ...[46, 49, 50, 51].map((k) => vector(2, k, 2)),
].toSorted((one, other) => one.type - other.type || one.k - other.k || one.b - other.b);

/** Rotates a 32-bit word to the left. */
export function rotate(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}

/** Type I, and type II up to K = 49, have no disturbance in steps 53 to 57; the others have none in 60 to 64. */
function vector(type: 1 | 2, k: number, b: number): DisturbanceVector {
  return {
    type,
    k,
    b,
    differences: messageDifferences(type, k, b),
    agreesAfter: k < 50 ? 58 : 65,
  };
}

/** Computes the differences of a vector. Each disturbance is corrected over the next five steps. */
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

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
