import type { ObservabilitySection } from "../config/sections/observability-section.ts";
import type { RunningExport } from "./running-export.ts";
import type { TelemetryParts } from "./telemetry-parts.ts";

/**
 * Export of metrics and spans by OpenTelemetry, as the section `observability` says. Its code is loaded only when the section
 * turns it on. No fault of it reaches the daemon.
 */
export class Telemetry {
  readonly #parts: TelemetryParts;
  #configured = "";
  #running: RunningExport | undefined;
  /** Exports that send their rest. */
  readonly #ending = new Set<Promise<void>>();

  constructor(parts: TelemetryParts) {
    this.#parts = parts;
  }

  /** Takes up a section. One that has not changed changes nothing. Never rejects. */
  async configure(section: ObservabilitySection): Promise<void> {
    const configured = JSON.stringify(section);
    if (configured === this.#configured) return;
    this.#configured = configured;
    this.#end();
    const { enabled, endpoint } = section;
    const { environment, logger } = this.#parts;
    // The standard switch, for one start without a change of the configuration.
    if (!enabled || endpoint === undefined || environment["OTEL_SDK_DISABLED"]?.toLowerCase() === "true")
      return;
    try {
      const { runExport } = await import("./running-export.ts");
      this.#running = runExport(this.#parts, { ...section, endpoint });
      logger.info({ collector: new URL(endpoint).origin }, "telemetry is exported");
    } catch (error) {
      logger.warn({ err: error }, "telemetry cannot be exported");
    }
  }

  /** Sends the rest, within two seconds. Never rejects. */
  async close(): Promise<void> {
    this.#end();
    await Promise.all(this.#ending);
  }

  /** The rest is sent behind what follows. */
  #end(): void {
    const former = this.#running;
    if (former === undefined) return;
    this.#running = undefined;
    former.stop();
    const ended = former.close();
    this.#ending.add(ended);
    void ended.finally(() => this.#ending.delete(ended));
  }
}
