import type { Clock, Logger } from "@devplat/base";
import type { Signal } from "./otlp-settings.ts";

/** Shortest time between two lines about one signal, in milliseconds: a collector that fails every other time must not fill the log. */
const REPORT_MS = 60_000;

export interface ExportHealthParts {
  readonly signal: Signal;
  readonly logger: () => Logger;
  readonly clock: Clock;
}

/** Logs when the export of one signal begins to fail and when it works again: one line for each change, at most one a minute. */
export class ExportHealth {
  readonly #parts: ExportHealthParts;
  #isReportedAsFailing = false;
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: ExportHealthParts) {
    this.#parts = parts;
  }

  /** A batch was accepted or dropped. @param problem undefined if it was accepted. It quotes nothing that the collector has sent */
  note(problem: string | undefined): void {
    const { signal, logger, clock } = this.#parts;
    const isFailing = problem !== undefined;
    const now = clock.monotonic();
    if (isFailing === this.#isReportedAsFailing || now - this.#reportedAt < REPORT_MS) return;
    this.#isReportedAsFailing = isFailing;
    this.#reportedAt = now;
    if (isFailing) logger().warn({ signal, reason: problem }, "telemetry is not exported");
    else logger().info({ signal }, "telemetry is exported again");
  }
}
