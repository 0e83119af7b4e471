import { setTimeout as sleep } from "node:timers/promises";
import { Random, zipfSums } from "../simulate/engine/random.ts";
import { KINDS } from "../simulate/model/kinds.ts";
import type { Load } from "../simulate/model/scenario.ts";
import { STAND_MIX, STAND_ZIPF } from "../simulate/model/stand.ts";
import type { ScaleStand } from "./scale-stand.ts";

/** A job that ended. */
interface Ended {
  readonly seconds: number;
  readonly bytes: number;
}

/** Mean number of pushes that a workspace lacks, as in the model. */
const MEAN_AGE = 2.5;
/** Seed of the real jobs: another one than that of the model, so that both have the same distribution only. */
const SEED = 77;

/** Sends real jobs to a stand with the distributions of the model. */
export class JobDriver {
  readonly #stand: ScaleStand;
  readonly #choices = new Random(SEED, 0);
  readonly #times = new Random(SEED, 1);
  readonly #popularity: Float64Array;
  readonly #kinds: readonly number[];
  #ended: Ended[] = [];
  #running = 0;

  constructor(stand: ScaleStand) {
    this.#stand = stand;
    this.#popularity = zipfSums(stand.repositories.length, STAND_ZIPF);
    let sum = 0;
    this.#kinds = KINDS.map((kind) => (sum += STAND_MIX[kind]));
  }

  /** Runs a load for some seconds. @returns jobs that ended in this time */
  async run(load: Load, seconds: number): Promise<readonly Ended[]> {
    if (load.kind === "pushed") throw new Error("the stand has no jobs that pushes start");
    const end = performance.now() + seconds * 1000;
    this.#ended = [];
    const work = [this.#pushes(load.pushesPerSecond, end)];
    if (load.kind === "steady") work.push(this.#atRandom(1 / load.jobsPerSecond, end));
    else for (let client = 0; client < load.clients; client++) work.push(this.#oneAfterAnother(end));
    await sleep(Math.max(0, end - performance.now()));
    const ended = this.#ended;
    this.#ended = [];
    await Promise.all(work);
    while (this.#running > 0) await sleep(10);
    return ended;
  }

  async #job(): Promise<void> {
    const at = this.#choices.index(this.#popularity);
    const kind = KINDS[this.#choices.index(this.#kinds)]!;
    const age = 1 + Math.floor(this.#choices.exponential(MEAN_AGE));
    this.#running++;
    try {
      const behind = this.#stand.repositories[at]!.before(age);
      this.#ended.push(await this.#stand.client.job(this.#stand.urlOf(at), kind, behind));
    } finally {
      this.#running--;
    }
  }

  async #oneAfterAnother(end: number): Promise<void> {
    while (performance.now() < end) await this.#job();
  }

  async #atRandom(mean: number, end: number): Promise<void> {
    const jobs: Promise<void>[] = [];
    // The next start counts from the last one and not from now, so that a late timer does not lower the rate.
    for (let next = performance.now(); ;) {
      next += this.#times.exponential(mean) * 1000;
      if (next >= end) break;
      await sleep(Math.max(0, next - performance.now()));
      jobs.push(this.#job());
    }
    await Promise.all(jobs);
  }

  async #pushes(perSecond: number, end: number): Promise<void> {
    if (perSecond === 0) return;
    for (;;) {
      const pause = this.#times.exponential(1 / perSecond) * 1000;
      if (performance.now() + pause >= end) return;
      await sleep(pause);
      await this.#stand.repositories[this.#choices.index(this.#popularity)]!.push();
    }
  }
}
