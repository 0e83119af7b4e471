import type { Clock } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import type { RepositoryId } from "../storage/repository-id.ts";
import type { Mirrors } from "./mirrors.ts";

/** Milliseconds after a repair in which further failures are taken for consequences of the same damage. */
const SETTLING_MS = 60_000;
/** Maximum number of repositories whose latest repair or search is remembered. */
const MAX_REMEMBERED = 1024;

/** Repairs mirrors after failures. Each repair reads all packs of its mirror. */
export class Repairs {
  readonly #mirrors: Mirrors;
  readonly #running = new Map<string, Promise<void>>();
  readonly #repaired: BoundedMap<string, true>;
  readonly #searched: BoundedMap<string, true>;
  readonly #searching = new Set<string>();

  constructor(mirrors: Mirrors, clock: Clock) {
    this.#mirrors = mirrors;
    const options = { max: MAX_REMEMBERED, ttlMs: SETTLING_MS, now: () => clock.monotonic() };
    this.#repaired = new BoundedMap(options);
    this.#searched = new BoundedMap(options);
  }

  /**
   * Removes damaged packs from a mirror, or quarantines all of its data. The next fill brings it back. Concurrent calls
   * for a repository share one repair.
   */
  async repair(id: RepositoryId): Promise<void> {
    const { key } = id;
    const running = this.#running.get(key) ?? this.#repair(id).finally(() => this.#running.delete(key));
    this.#running.set(key, running);
    await running;
  }

  /** Searches a mirror for damage, once a minute, and repairs it. For use when it could not take in a pack. */
  async suspect(id: RepositoryId): Promise<void> {
    if (this.#searched.get(id.key) === true) return;
    this.#searched.set(id.key, true);
    this.#searching.add(id.key);
    try {
      if (await this.#mirrors.of(id).isDamaged()) await this.repair(id);
    } finally {
      this.#searching.delete(id.key);
    }
  }

  /** Whether a search for damage runs. Until it ends, no response should be made from the mirror. */
  isSuspected({ key }: RepositoryId): boolean {
    return this.#searching.has(key);
  }

  /** Waits for repairs in progress. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#running.values());
  }

  async #repair(id: RepositoryId): Promise<void> {
    const result = await this.#mirrors
      .of(id)
      .repair()
      .catch(() => undefined);
    if (result !== undefined) this.#repaired.set(id.key, true);
    // No pack is damaged. Either a request that began before the latest repair failed late, or other files are damaged.
    else if (this.#repaired.get(id.key) !== true) await this.#mirrors.quarantine(id);
  }
}
