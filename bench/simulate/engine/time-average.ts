import type { Simulation } from "./simulation.ts";

/** A level that changes in steps, such as the number of waiting requests. */
export class TimeAverage {
  readonly #simulation: Simulation;
  #level = 0;
  #area = 0;
  #since: number;
  #begin: number;
  #peak = 0;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.#since = this.#begin = simulation.now;
  }

  get level(): number {
    return this.#level;
  }

  /** Highest level since the last {@link reset}. */
  get peak(): number {
    return this.#peak;
  }

  /** Average level since the last {@link reset}. */
  get average(): number {
    const { now } = this.#simulation;
    const area = this.#area + this.#level * (now - this.#since);
    return now === this.#begin ? this.#level : area / (now - this.#begin);
  }

  set(level: number): void {
    const { now } = this.#simulation;
    this.#area += this.#level * (now - this.#since);
    this.#since = now;
    this.#level = level;
    this.#peak = Math.max(this.#peak, level);
  }

  add(change: number): void {
    this.set(this.#level + change);
  }

  /** Begins a new period, with the present level. */
  reset(): void {
    this.#area = 0;
    this.#since = this.#begin = this.#simulation.now;
    this.#peak = this.#level;
  }
}
