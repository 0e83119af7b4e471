import type { Logger } from "@devplat/base";
import type { ObservedRequest } from "./observed-request.ts";

/** Export to a collector by OTLP. */
export interface OpenTelemetry {
  /** One span for the request; to be called once, when its answer is closed. */
  request(context: ObservedRequest): void;
  /** A line of the log, as JSON. */
  log(line: string): void;
  /** Sends the rest, for a few seconds. Never rejects. */
  close(): Promise<void>;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Opens the export of traces and logs that the standard variables ask for (OpenTelemetry, "SDK environment variables"):
 * with `OTEL_EXPORTER_OTLP_ENDPOINT` both, with `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `_LOGS_ENDPOINT` one of them,
 * unless `OTEL_TRACES_EXPORTER` or `OTEL_LOGS_EXPORTER` is `none`, or `OTEL_SDK_DISABLED` is `true`.
 *
 * The SDK is loaded only then: it takes a tenth of a second and 40 MB.
 *
 * @param logger for lines about the export itself. It is called after this function has returned
 * @returns undefined: nothing is asked for
 */
export async function openTelemetry(
  environment: Environment,
  version: string,
  logger: () => Logger,
): Promise<OpenTelemetry | undefined> {
  const traces = isWanted(environment, "TRACES");
  const logs = isWanted(environment, "LOGS");
  if (!traces && !logs) return undefined;
  const { startSdk } = await import("./otel-sdk.ts");
  return startSdk({ environment, version, traces, logs, logger });
}

function isWanted(environment: Environment, signal: "TRACES" | "LOGS"): boolean {
  if (environment["OTEL_SDK_DISABLED"]?.toLowerCase() === "true") return false;
  const exporter = environment[`OTEL_${signal}_EXPORTER`] ?? "";
  if (exporter !== "") return exporter.split(",").includes("otlp");
  const endpoints = ["OTEL_EXPORTER_OTLP_ENDPOINT", `OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`];
  return endpoints.some((name) => (environment[name] ?? "") !== "");
}
