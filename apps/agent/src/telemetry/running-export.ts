import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { startExport } from "@devplat/telemetry";
import { BRAND } from "../brand.ts";
import type { ObservabilitySection } from "../config/sections/observability-section.ts";
import { SpanRecorder } from "./span-recorder.ts";
import type { TelemetryParts } from "./telemetry-parts.ts";

/** An export that runs. */
export interface RunningExport {
  /** Stops recording. */
  stop(): void;
  /** Sends the rest, within two seconds. Never rejects. */
  close(): Promise<void>;
}

/** Starts to export metrics and spans to the collector of the section. */
export function runExport(
  { environment, version, logger, metrics }: TelemetryParts,
  section: ObservabilitySection & { readonly endpoint: string },
): RunningExport {
  const { endpoint, protocol, headers, service_name: serviceName, interval } = section;
  const { tracer, close } = startExport({
    name: BRAND.command,
    version,
    environment,
    collector: { endpoint, protocol, headers },
    // Several daemons of a fleet, and of one host, are told apart.
    resource: { "service.name": serviceName, "service.instance.id": randomUUID(), "host.name": hostname() },
    traces: true,
    metrics: { read: metrics, intervalMs: interval },
    logger: () => logger,
  });
  const recorder = tracer && new SpanRecorder(tracer);
  recorder?.start();
  return { stop: () => recorder?.stop(), close };
}
