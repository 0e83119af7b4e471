import type { ServerResponse } from "node:http";
import { Gauge, type Registry } from "prom-client";
import { BRAND } from "../brand.ts";

/** Requests that are not complete, by which an autoscaler adds and removes instances. */
export class InFlightMetrics {
  readonly #requests: Gauge;

  constructor(registry: Registry) {
    this.#requests = new Gauge({
      name: `${BRAND.metricPrefix}_requests_in_flight`,
      help: "Requests on the main listener whose response is not complete. Those that wait in a queue count.",
      registers: [registry],
    });
  }

  /** Counts a request until its response is complete, or its connection is closed. */
  begin(response: ServerResponse): void {
    this.#requests.inc();
    response.once("close", () => this.#requests.dec());
  }
}
