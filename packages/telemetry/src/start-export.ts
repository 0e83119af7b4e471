import { systemClock, type Clock, type Logger } from "@devplat/base";
import { HttpClient } from "@devplat/http-client";
import type { Attributes, Tracer } from "@opentelemetry/api";
import {
  JsonLogsSerializer,
  JsonMetricsSerializer,
  JsonTraceSerializer,
  ProtobufLogsSerializer,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
  type ISerializer,
} from "@opentelemetry/otlp-transformer";
import { detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import { BatchLogRecordProcessor, LoggerProvider } from "@opentelemetry/sdk-logs";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { BatchSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { ExportHealth } from "./export-health.ts";
import type { MetricFamily } from "./metric-family.ts";
import { FamilyProducer } from "./metric-producer.ts";
import { OtlpExporter } from "./otlp-exporter.ts";
import {
  signalSettings,
  type CollectorSettings,
  type Environment,
  type Protocol,
  type Signal,
} from "./otlp-settings.ts";
import { samplerOf } from "./sampler.ts";

/** Time that a collector gets for the last batches, in milliseconds. */
const CLOSE_LIMIT_MS = 2000;
/** Time until an idle connection to the collector is closed, in milliseconds. */
const IDLE_MS = 30_000;

/** A sink for log records. */
export type LogSink = ReturnType<LoggerProvider["getLogger"]>;

export interface ExportOptions {
  /** Name of the program: the default of `service.name`. */
  readonly name: string;
  readonly version: string;
  /** Source of the standard variables, and of those that name a proxy. */
  readonly environment: Environment;
  /** Default: the collector of the standard variables. */
  readonly collector?: CollectorSettings;
  /** Further attributes of the program. They come before those of `OTEL_RESOURCE_ATTRIBUTES`. */
  readonly resource?: Attributes;
  readonly traces?: boolean;
  readonly logs?: boolean;
  readonly metrics?: {
    readonly read: () => Promise<readonly MetricFamily[]>;
    readonly intervalMs: number;
  };
  /** For lines about the export itself. It is called after {@link startExport} has returned. */
  readonly logger: () => Logger;
  readonly clock?: Clock;
}

export interface TelemetryExport {
  /** Undefined unless traces are exported. */
  readonly tracer: Tracer | undefined;
  /** Undefined unless logs are exported. */
  readonly logs: LogSink | undefined;
  /** Sends the rest, for two seconds at most. Never rejects. */
  readonly close: () => Promise<void>;
}

/**
 * Starts the export to a collector by OTLP over HTTP. A collector that is down, slow or hostile costs a limited amount of memory, and
 * delays nothing: at most 2048 spans and log records wait, each batch has a time limit, and the rest is dropped.
 */
export function startExport(options: ExportOptions): TelemetryExport {
  const { name, version, environment, logger, clock = systemClock } = options;
  const resource = resourceFromAttributes({ "service.name": name, "service.version": version })
    .merge(detectResources({ detectors: [envDetector] }))
    .merge(resourceFromAttributes(options.resource ?? {}));
  const endings: (() => Promise<void>)[] = [];
  const exporterOf = <Batch>(signal: Signal, serializers: Serializers<Batch>): OtlpExporter<Batch> => {
    const settings = signalSettings(signal, environment, options.collector);
    for (const problem of settings.problems) setImmediate(() => logger().warn({ signal }, problem));
    const client = new HttpClient({
      environment,
      idleMs: IDLE_MS,
      ...(settings.tls && { tls: settings.tls }),
    });
    const health = new ExportHealth({ signal, logger, clock });
    const serializer = serializers[settings.protocol];
    const exporter = new OtlpExporter({ client, serializer, settings, health, clock });
    endings.push(async () => {
      exporter.end();
      await client.close();
    });
    return exporter;
  };
  const delay = Number(environment["OTEL_BSP_SCHEDULE_DELAY"] ?? Number.NaN);
  const batches = delay > 0 ? { scheduledDelayMillis: delay } : {};
  const tracers =
    options.traces === true
      ? new TracerProvider({
          resource,
          sampler: samplerOf(environment),
          spanProcessors: [
            new BatchSpanProcessor({ exporter: exporterOf("traces", TRACE_SERIALIZERS), ...batches }),
          ],
        })
      : undefined;
  const loggers =
    options.logs === true
      ? new LoggerProvider({
          resource,
          processors: [new BatchLogRecordProcessor({ exporter: exporterOf("logs", LOG_SERIALIZERS) })],
        })
      : undefined;
  const { metrics } = options;
  const meters =
    metrics &&
    new MeterProvider({
      resource,
      readers: [
        new PeriodicExportingMetricReader({
          exporter: exporterOf("metrics", METRIC_SERIALIZERS),
          exportIntervalMillis: metrics.intervalMs,
          metricProducers: [new FamilyProducer({ scope: { name, version }, resource, read: metrics.read })],
        }),
      ],
    });
  return {
    tracer: tracers?.getTracer(name, version),
    logs: loggers?.getLogger(name, version),
    async close(): Promise<void> {
      const limit = Promise.withResolvers<void>();
      const timer = setTimeout(limit.resolve, CLOSE_LIMIT_MS);
      // A collector that is away must not delay the stop, nor make it fail.
      const flushed = Promise.allSettled([tracers?.shutdown(), meters?.shutdown(), loggers?.shutdown()]);
      await Promise.race([flushed, limit.promise]);
      clearTimeout(timer);
      await Promise.all(endings.map((end) => end()));
    },
  };
}

type Serializers<Batch> = Readonly<Record<Protocol, ISerializer<Batch, object>>>;

const TRACE_SERIALIZERS = { "http/protobuf": ProtobufTraceSerializer, "http/json": JsonTraceSerializer };
const LOG_SERIALIZERS = { "http/protobuf": ProtobufLogsSerializer, "http/json": JsonLogsSerializer };
const METRIC_SERIALIZERS = { "http/protobuf": ProtobufMetricsSerializer, "http/json": JsonMetricsSerializer };
