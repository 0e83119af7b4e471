import type { Logger } from "@devplat/base";
import { TokenBucket } from "@devplat/base/token-bucket";
import type { AccelMetrics } from "../../telemetry/accel-metrics.ts";

/**
 * Why a request does not count as one of the proxy in front.
 * - `missing`: it has no `X-Svc-Accel`, as requests of clients that do not come through the proxy.
 * - `secret`: the value is not `server.accel_secret`.
 * - `peer`: the value is right, and the connection is not from a loopback address or a Unix socket.
 */
export type AccelRefusal = "missing" | "secret" | "peer";

/** Milliseconds between two log lines with the same reason: each request of a proxy with a wrong secret is refused. */
const LOG_INTERVAL_MS = 600_000;

const MESSAGES = {
  secret:
    "X-Svc-Accel has a wrong value, and nothing is handed over: set the same value as server.accel_secret and in the web server",
  peer: "X-Svc-Accel has the right value, and nothing is handed over, because the connection is not from a loopback address or a Unix socket: let the web server connect to one",
};

export interface AccelRefusalsParts {
  readonly metrics: Pick<AccelMetrics, "refused">;
  readonly logger: Logger;
}

/** Counts requests whose `X-Svc-Accel` is refused, and logs the first of each reason. */
export class AccelRefusals {
  readonly #parts: AccelRefusalsParts;
  readonly #lines = new TokenBucket({ capacity: 1, refillMs: LOG_INTERVAL_MS });

  constructor(parts: AccelRefusalsParts) {
    this.#parts = parts;
  }

  /** @param peer address of the connection; undefined: a Unix socket */
  note(reason: AccelRefusal, peer: string | undefined): void {
    if (reason === "missing") return;
    const { metrics, logger } = this.#parts;
    metrics.refused(reason);
    if (this.#lines.take(reason) === 0) logger.warn({ peer: peer ?? "Unix socket" }, MESSAGES[reason]);
  }
}
