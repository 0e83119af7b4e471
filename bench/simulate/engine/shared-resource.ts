import { Share, type ShareOptions } from "./share.ts";
import type { Simulation, Wait } from "./simulation.ts";

/** Capacity that several shares use: the cores of a machine, a network link, a disk. */
export class SharedResource {
  readonly #simulation: Simulation;
  readonly #capacity: number;
  readonly #shares: Share[] = [];
  #begin = 0;

  /** @param capacity work that it does in a second: cores, or bytes */
  constructor(simulation: Simulation, capacity: number) {
    this.#simulation = simulation;
    this.#capacity = capacity;
  }

  /** A resource with one share. */
  static single(simulation: Simulation, capacity: number, perJob: number): [SharedResource, Share] {
    const resource = new SharedResource(simulation, capacity);
    return [resource, resource.share({ limit: capacity, perJob })];
  }

  share(options: ShareOptions): Share {
    const share = new Share(options);
    this.#shares.push(share);
    return share;
  }

  /** Pause until this much work is done in a share. */
  use(share: Share, amount: number): Wait {
    return (resume) => {
      if (amount <= 0) {
        resume();
        return;
      }
      share.advance(this.#simulation.now);
      share.add(amount, resume);
      this.#allocate(share);
    };
  }

  /** Work of all shares since the last {@link reset}. */
  get work(): number {
    for (const share of this.#shares) share.advance(this.#simulation.now);
    return this.#shares.reduce((sum, { work }) => sum + work, 0);
  }

  /** Share of the capacity that was used since the last {@link reset}. */
  get utilisation(): number {
    const elapsed = this.#simulation.now - this.#begin;
    return elapsed === 0 ? 0 : this.work / (elapsed * this.#capacity);
  }

  /** Begins a new period of {@link work}. */
  reset(): void {
    for (const share of this.#shares) {
      share.advance(this.#simulation.now);
      share.resetWork();
    }
    this.#begin = this.#simulation.now;
  }

  /** Distributes the capacity again after a share changed. */
  #allocate(changed: Share): void {
    const { now } = this.#simulation;
    const rates = divide(this.#shares, this.#capacity);
    this.#shares.forEach((share, index) => {
      const rate = rates[index] ?? 0;
      if (share !== changed && rate === share.rate) return;
      share.advance(now);
      share.rate = rate;
      share.version++;
      const seconds = share.untilFirst();
      if (seconds === undefined) return;
      const { version } = share;
      this.#simulation.after(seconds, () => {
        if (version === share.version) this.#finish(share);
      });
    });
  }

  #finish(share: Share): void {
    share.advance(this.#simulation.now);
    const resume = share.takeFirst();
    this.#allocate(share);
    resume?.();
  }
}

/**
 * Capacity for each share: as much as it can use, if that is there for all. Otherwise each unit of demand gets the same, by weight,
 * and no more than it can use, as a scheduler that is fair between threads does.
 */
function divide(shares: readonly Share[], capacity: number): number[] {
  const demands = shares.map(({ demand }) => demand);
  let left = capacity;
  if (demands.reduce((sum, demand) => sum + demand, 0) <= capacity) return demands;
  const rates = demands.map(() => 0);
  let open = shares.map((_, index) => index).filter((index) => demands[index]! > 0);
  while (open.length > 0) {
    const weights = open.reduce((sum, index) => sum + demands[index]! * shares[index]!.weight, 0);
    const each = left / weights;
    const full = open.filter((index) => each * shares[index]!.weight >= 1);
    if (full.length === 0) {
      for (const index of open) rates[index] = each * demands[index]! * shares[index]!.weight;
      break;
    }
    for (const index of full) {
      rates[index] = demands[index]!;
      left -= demands[index]!;
    }
    open = open.filter((index) => !full.includes(index));
  }
  return rates;
}
