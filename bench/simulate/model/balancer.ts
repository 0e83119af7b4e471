import { createHash } from "node:crypto";
import { Random } from "../engine/random.ts";

/** Points of each instance on the ring; nginx has as many for a server of weight 1. */
const POINTS = 160;

/** Chooses the instance of a request, like nginx with `hash … consistent` or `random`. */
export class Balancer {
  readonly #count: number;
  readonly #ring: readonly (readonly [point: number, instance: number])[];
  readonly #random: Random | undefined;

  /** @param seed of the random choice; undefined: by repository */
  constructor(count: number, seed: number | undefined) {
    this.#count = count;
    this.#random = seed === undefined ? undefined : new Random(seed, 3);
    this.#ring = Array.from({ length: count }, (_, instance) =>
      Array.from(
        { length: POINTS },
        (_unused, at) => [pointOf(`instance ${instance} ${at}`), instance] as const,
      ),
    )
      .flat()
      .toSorted(([one], [other]) => one - other);
  }

  choose(repository: number): number {
    return this.#random === undefined
      ? this.ownerOf(repository)
      : Math.floor(this.#random.uniform() * this.#count);
  }

  /** Instance of a repository on the ring. */
  ownerOf(repository: number): number {
    const point = pointOf(`repository ${repository}`);
    let [low, high] = [0, this.#ring.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#ring[middle]![0] < point) low = middle + 1;
      else high = middle;
    }
    return (this.#ring[low] ?? this.#ring[0]!)[1];
  }
}

function pointOf(text: string): number {
  return createHash("sha256").update(text).digest().readUInt32BE(0);
}
