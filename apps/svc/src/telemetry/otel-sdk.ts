import {
  ROOT_CONTEXT,
  SeverityNumber,
  SpanKind,
  SpanStatusCode,
  trace,
  type Context,
} from "@opentelemetry/api";
import { OTLPLogExporter } from "@opentelemetry/exporter-logs-otlp-http";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import { BatchLogRecordProcessor, LoggerProvider } from "@opentelemetry/sdk-logs";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type Sampler,
} from "@opentelemetry/sdk-trace";
import { BRAND } from "../brand.ts";
import type { ObservedRequest } from "./observed-request.ts";

/** Milliseconds that a collector gets for the last batch. */
const CLOSE_LIMIT_MS = 2000;
/** W3C Trace Context, section 3.2: version, trace id, parent id, flags. */
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;

const SEVERITIES: Readonly<Record<string, SeverityNumber>> = {
  debug: SeverityNumber.DEBUG,
  info: SeverityNumber.INFO,
  warn: SeverityNumber.WARN,
  error: SeverityNumber.ERROR,
};

export interface SdkOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  readonly traces: boolean;
  readonly logs: boolean;
}

/** The SDK with its OTLP exporters; these read the address, headers and time-outs from the standard variables. */
export function startSdk({ environment, version, traces, logs }: SdkOptions) {
  const resource = resourceFromAttributes({
    "service.name": BRAND.command,
    "service.version": version,
  }).merge(detectResources({ detectors: [envDetector] }));
  const tracers = traces
    ? new TracerProvider({
        resource,
        sampler: samplerOf(environment),
        spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
      })
    : undefined;
  const loggers = logs
    ? new LoggerProvider({
        resource,
        processors: [new BatchLogRecordProcessor({ exporter: new OTLPLogExporter() })],
      })
    : undefined;
  const tracer = tracers?.getTracer(BRAND.command, version);
  const logger = loggers?.getLogger(BRAND.command, version);
  return {
    request(context: ObservedRequest): void {
      const endTime = Date.now();
      const span = tracer?.startSpan(
        context.request.method ?? "HTTP",
        {
          kind: SpanKind.SERVER,
          startTime: endTime - (performance.now() - context.startedAt),
          attributes: attributesOf(context),
        },
        parentOf(context.request.headers["traceparent"]),
      );
      if (context.response.statusCode >= 500) span?.setStatus({ code: SpanStatusCode.ERROR });
      span?.end(endTime);
    },
    log(line: string): void {
      if (logger === undefined) return;
      const { time, level, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
      logger.emit({
        timestamp: Date.parse(String(time)),
        severityNumber: SEVERITIES[String(level)] ?? SeverityNumber.UNSPECIFIED,
        severityText: String(level),
        body: String(msg),
        attributes: Object.fromEntries(
          Object.entries(fields).map(([name, value]) => [
            name,
            isPlain(value) ? value : JSON.stringify(value),
          ]),
        ),
      });
    },
    async close(): Promise<void> {
      // A collector that is away must not hold the stop up, nor make it a failure.
      await Promise.race([
        // It sends what is left, and tries again and again for half a minute.
        Promise.allSettled([tracers?.shutdown(), loggers?.shutdown()]),
        new Promise((resolve) => setTimeout(resolve, CLOSE_LIMIT_MS).unref()),
      ]);
    },
  };
}

/** Names of the semantic conventions for HTTP servers; ours begin with the brand. Never a query, never a header of credentials. */
function attributesOf(context: ObservedRequest): Record<string, string | number> {
  const { request, response, principal } = context;
  const own = BRAND.command;
  return {
    "http.request.method": request.method ?? "",
    "url.path": context.shownPath,
    "http.response.status_code": response.statusCode,
    "client.address": context.remoteAddress,
    "user_agent.original": context.shown(request.headers["user-agent"] ?? ""),
    [`${own}.request_id`]: context.id,
    [`${own}.timing`]: context.serverTiming,
    ...(context.cacheRepo === "" ? {} : { [`${own}.cache_repo`]: context.cacheRepo }),
    ...(context.cacheState === "" ? {} : { [`${own}.cache_state`]: context.cacheState }),
    ...(principal === undefined ? {} : { [`${own}.principal`]: principal.kind }),
  };
}

function parentOf(header: string | readonly string[] | undefined): Context {
  const match = typeof header === "string" ? TRACEPARENT.exec(header) : null;
  const [, traceId = "", spanId = "", flags = ""] = match ?? [];
  if (match === null || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return ROOT_CONTEXT;
  const traceFlags = Number.parseInt(flags, 16) & 1;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}

/** `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`; the default is what the caller decided, else always. */
function samplerOf(environment: SdkOptions["environment"]): Sampler {
  const given = Number(environment["OTEL_TRACES_SAMPLER_ARG"] ?? "1");
  const ratio = new TraceIdRatioBasedSampler(given >= 0 && given <= 1 ? given : 1);
  const roots: Readonly<Record<string, Sampler>> = {
    always_on: new AlwaysOnSampler(),
    always_off: new AlwaysOffSampler(),
    traceidratio: ratio,
  };
  const name = environment["OTEL_TRACES_SAMPLER"] ?? "parentbased_always_on";
  const root = roots[name.replace(/^parentbased_/, "")] ?? new AlwaysOnSampler();
  return name.startsWith("parentbased_") ? new ParentBasedSampler({ root }) : root;
}

function isPlain(value: unknown): value is string | number | boolean {
  return ["string", "number", "boolean"].includes(typeof value);
}
