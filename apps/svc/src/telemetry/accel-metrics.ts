import { Counter, type Registry } from "prom-client";
import { BRAND } from "../brand.ts";

/** Metrics of `server.accel`. */
export class AccelMetrics {
  readonly #refused: Counter<"reason">;

  constructor(registry: Registry) {
    this.#refused = new Counter({
      name: `${BRAND.metricPrefix}_accel_refused_total`,
      help: "Requests for stored responses whose X-Svc-Accel was refused, by reason.",
      labelNames: ["reason"],
      registers: [registry],
    });
    for (const reason of ["secret", "peer"]) this.#refused.inc({ reason }, 0);
  }

  /** A stored response was not handed to the proxy in front, because its header was refused. */
  refused(reason: "secret" | "peer"): void {
    this.#refused.inc({ reason });
  }
}
