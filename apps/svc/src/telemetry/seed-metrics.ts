import { Counter, type Registry } from "prom-client";
import { BRAND } from "../brand.ts";

/** Metrics of seeds. */
export class SeedMetrics {
  readonly #savedSeconds: Counter<"source">;

  constructor(registry: Registry) {
    this.#savedSeconds = new Counter({
      name: `${BRAND.metricPrefix}_cache_saved_seconds_total`,
      help: "Estimated CPU seconds that clients did not spend on indexing, by source.",
      labelNames: ["source"],
      registers: [registry],
    });
    this.#savedSeconds.inc({ source: "seed" }, 0);
  }

  /** A client took a pack with its indexes. @param seconds of CPU that it did not spend: an estimate */
  saved(seconds: number): void {
    this.#savedSeconds.inc({ source: "seed" }, seconds);
  }
}
