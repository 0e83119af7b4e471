/** Numbers from 0 to 1 that a seed decides (a linear congruential generator: good enough for moments). */
export function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0) / 2 ** 32;
}
