import { Counter, Gauge, type Registry } from "prom-client";
import { BRAND } from "../brand.ts";

const named = (name: string): string => `${BRAND.metricPrefix}_cache_object_${name}`;

/** Metrics of the bucket. They exist only if one is configured. */
export class ObjectTierMetrics {
  readonly #usable: Gauge;
  readonly #circuitOpen: Gauge;
  readonly #refused: Counter<"reason">;

  /** @param reasons why a manifest can be refused: each is counted from 0, so that a rate has its first event */
  constructor(registry: Registry, reasons: readonly string[]) {
    const registers = [registry];
    this.#usable = new Gauge({
      name: named("store_usable"),
      help: "1 if the probe of the bucket has shown that it can be used.",
      registers,
    });
    this.#circuitOpen = new Gauge({
      name: named("circuit_open"),
      help: "1 while the bucket is left alone after several failures.",
      registers,
    });
    this.#refused = new Counter({
      name: named("manifests_refused_total"),
      help: "Manifests in the bucket that were not used, by reason.",
      labelNames: ["reason"],
      registers,
    });
    this.#usable.set(0);
    this.#circuitOpen.set(0);
    for (const reason of reasons) this.#refused.inc({ reason }, 0);
  }

  usable(isUsable: boolean): void {
    this.#usable.set(isUsable ? 1 : 0);
  }

  circuit(isOpen: boolean): void {
    this.#circuitOpen.set(isOpen ? 1 : 0);
  }

  manifestRefused(reason: string): void {
    this.#refused.inc({ reason });
  }
}
