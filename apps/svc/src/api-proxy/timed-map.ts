import type { Clock } from "@devplat/base";
import { RecentMap } from "../scopes/recent-map.ts";

/** Remembers values for a time; of many, those used last. */
export class TimedMap<Value> {
  readonly #keptMs: number;
  readonly #clock: Clock;
  readonly #entries: RecentMap<string, { readonly value: Value; readonly until: number }>;

  constructor(size: number, keptMs: number, clock: Clock) {
    this.#keptMs = keptMs;
    this.#clock = clock;
    this.#entries = new RecentMap(size);
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && this.#clock.monotonic() < entry.until ? entry.value : undefined;
  }

  set(key: string, value: Value): void {
    this.#entries.set(key, { value, until: this.#clock.monotonic() + this.#keptMs });
  }

  /** The value, else what `ask` gives; what it does not find is not remembered: another may see it. */
  async getOr(key: string, ask: () => Promise<Value | undefined>): Promise<Value | undefined> {
    const kept = this.get(key);
    if (kept !== undefined) return kept;
    const value = await ask();
    if (value !== undefined) this.set(key, value);
    return value;
  }
}
