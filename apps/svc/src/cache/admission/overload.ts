import type { ToldWaiters } from "./told-waiters.ts";

/** The other instances of this service, as an overloaded one sees them. */
export interface OtherInstances {
  /** Whether another instance reported in the last 10 seconds that it is ready. */
  isAnotherReady(): Promise<boolean>;
}

/**
 * Whether this instance should get no new clients for a while. A single one is always ready: a balancer that takes it out
 * leaves its clients with nothing.
 */
export class Overload {
  readonly #told: ToldWaiters;
  readonly #others: OtherInstances;

  constructor(told: ToldWaiters, others: OtherInstances) {
    this.#told = told;
    this.#others = others;
  }

  /** True only while another instance can take the clients. */
  async isTurningAway(): Promise<boolean> {
    // If the database does not say, there is none.
    return this.#told.isFull && (await this.#others.isAnotherReady().catch(() => false));
  }
}
