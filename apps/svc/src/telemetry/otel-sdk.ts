import type { Logger } from "@devplat/base";
import {
  ROOT_CONTEXT,
  SeverityNumber,
  SpanKind,
  SpanStatusCode,
  startExport,
  trace,
  type Context,
} from "@devplat/telemetry";
import { BRAND } from "../brand.ts";
import type { ObservedRequest } from "./observed-request.ts";

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
  readonly logger: () => Logger;
}

/** The SDK with its OTLP exporters; these read the address, headers and time-outs from the standard variables. */
export function startSdk({ environment, version, traces, logs, logger }: SdkOptions) {
  const {
    tracer,
    logs: sink,
    close,
  } = startExport({
    name: BRAND.command,
    version,
    environment,
    traces,
    logs,
    logger,
  });
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
      if (sink === undefined) return;
      const { time, level, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
      sink.emit({
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
    close,
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

function isPlain(value: unknown): value is string | number | boolean {
  return ["string", "number", "boolean"].includes(typeof value);
}
