import { randomFrom } from "@devplat/testkit";

/** Random numbers of one subject of the model, the same for the same seed. */
export class Random {
  readonly #next: () => number;

  /** @param stream number of the subject, so that a change of one does not change the rest */
  constructor(seed: number, stream: number) {
    this.#next = randomFrom(Math.imul(seed, 0x9e3779b1) ^ Math.imul(stream + 1, 0x85ebca6b));
  }

  /** From 0 up to 1. */
  uniform(): number {
    return this.#next();
  }

  /** Exponential distribution. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.#next());
  }

  /** Log-normal distribution. @param sigma standard deviation of the logarithm */
  logNormal(median: number, sigma: number): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.#next()));
    return median * Math.exp(sigma * radius * Math.cos(2 * Math.PI * this.#next()));
  }

  /** Index of a weight, with a probability in proportion to it. @param sums running sums of the weights */
  index(sums: Float64Array | readonly number[]): number {
    const value = this.#next() * (sums[sums.length - 1] ?? 0);
    let [low, high] = [0, sums.length - 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (sums[middle]! <= value) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Running sums of the weights of a Zipf distribution: the k-th most popular of `count` has the weight k^-exponent. */
export function zipfSums(count: number, exponent: number): Float64Array {
  const sums = new Float64Array(count);
  let sum = 0;
  for (let at = 0; at < count; at++) {
    sum += (at + 1) ** -exponent;
    sums[at] = sum;
  }
  return sums;
}
