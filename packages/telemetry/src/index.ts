export { ROOT_CONTEXT, SeverityNumber, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
export type { Attributes, Context, Span, Tracer } from "@opentelemetry/api";
export type { MetricFamily, MetricSample } from "./metric-family.ts";
export { startExport, type ExportOptions, type TelemetryExport } from "./start-export.ts";
export type { CollectorSettings, Environment, Protocol, Signal } from "./otlp-settings.ts";
