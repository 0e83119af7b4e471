import { Counter, type Registry } from "prom-client";
import { BRAND } from "../brand.ts";

/** Metric of fetches that instances share. It exists only if they do. */
export class SharedFetchMetrics {
  readonly #turns: Counter<"result">;

  constructor(registry: Registry) {
    this.#turns = new Counter({
      name: `${BRAND.metricPrefix}_cache_shared_fetch_total`,
      help: "Fetches from the code host that instances share, by who made them, or why they were not shared.",
      labelNames: ["result"],
      registers: [registry],
    });
  }

  turn(result: string): void {
    this.#turns.inc({ result });
  }
}
