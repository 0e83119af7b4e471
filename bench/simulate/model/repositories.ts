import { Random, zipfSums } from "../engine/random.ts";
import type { Scenario } from "./scenario.ts";

/** A repository at the code host. */
export interface Repository {
  readonly index: number;
  /** Bytes of a full clone. */
  readonly bytes: number;
  /** Number of pushes so far. */
  version: number;
}

/** The repositories of a scenario, the most popular first. */
export class Repositories {
  readonly all: readonly Repository[];
  readonly #popularity: Float64Array;
  readonly #random: Random;

  constructor({ seed, repositories }: Scenario) {
    const sizes = new Random(seed, 1);
    this.all = Array.from({ length: repositories.count }, (_, index) => ({
      index,
      bytes: Math.min(repositories.maxBytes, sizes.logNormal(repositories.medianBytes, repositories.sigma)),
      version: 0,
    }));
    this.#popularity = zipfSums(repositories.count, repositories.zipf);
    this.#random = new Random(seed, 2);
  }

  /** Expected number of repositories that are chosen at least once in so many choices. */
  expectedInUse(choices: number): number {
    const sum = this.#popularity.at(-1) ?? 0;
    let [expected, before] = [0, 0];
    for (const upTo of this.#popularity) {
      expected += 1 - Math.exp((-choices * (upTo - before)) / sum);
      before = upTo;
    }
    return expected;
  }

  /** A repository, the popular ones more often. */
  choose(): Repository {
    return this.all[this.#random.index(this.#popularity)]!;
  }
}
