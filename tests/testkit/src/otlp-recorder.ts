import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";

interface AttributeValue {
  readonly stringValue?: string;
  readonly intValue?: number | string;
  readonly doubleValue?: number;
  readonly boolValue?: boolean;
  readonly arrayValue?: { readonly values: readonly AttributeValue[] };
}
interface Attribute {
  readonly key: string;
  readonly value: AttributeValue;
}
interface Resource {
  readonly attributes: readonly Attribute[];
}
interface Point {
  readonly attributes?: readonly Attribute[];
  readonly asDouble?: number;
  readonly asInt?: number | string;
}

/** The part of OTLP's JSON that tests read. */
interface Exported {
  readonly resourceSpans?: readonly {
    readonly resource: Resource;
    readonly scopeSpans: readonly {
      readonly spans: readonly {
        readonly name: string;
        readonly kind: number;
        readonly traceId: string;
        readonly spanId: string;
        readonly parentSpanId?: string;
        readonly startTimeUnixNano: string;
        readonly endTimeUnixNano: string;
        readonly attributes?: readonly Attribute[];
        readonly status?: { readonly code?: number };
      }[];
    }[];
  }[];
  readonly resourceLogs?: readonly {
    readonly scopeLogs: readonly { readonly logRecords: readonly { readonly body: AttributeValue }[] }[];
  }[];
  readonly resourceMetrics?: readonly {
    readonly resource: Resource;
    readonly scopeMetrics: readonly {
      readonly metrics: readonly {
        readonly name: string;
        readonly description?: string;
        readonly gauge?: { readonly dataPoints: readonly Point[] };
        readonly sum?: { readonly dataPoints: readonly Point[]; readonly isMonotonic?: boolean };
      }[];
    }[];
  }[];
}

type Value = string | number | boolean | readonly Value[];
type Values = Readonly<Record<string, Value>>;

export interface RecordedSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first of its trace. */
  readonly parentSpanId: string;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Values;
  readonly isError: boolean;
}
export interface RecordedMetric {
  readonly name: string;
  readonly help: string;
  readonly type: "gauge" | "counter";
  readonly samples: readonly { readonly labels: Values; readonly value: number }[];
}

/** A stand-in for a collector. It only records the data that arrives by OTLP over HTTP with JSON. */
export interface OtlpRecorder {
  readonly url: string;
  readonly requests: readonly { readonly path: string; readonly authorization: string | undefined }[];
  /** Attributes of the program, by the last request with spans or metrics. */
  resource(): Values;
  /** All spans so far. */
  spans(): RecordedSpan[];
  /** The metrics of the last request with some. */
  metrics(): RecordedMetric[];
  logBodies(): string[];
  /** Everything that has arrived, as text. */
  text(): string;
  stop(): Promise<void>;
}

/** Error status of a span in OTLP. */
const ERROR_STATUS = 2;

export async function startOtlpRecorder(): Promise<OtlpRecorder> {
  const requests: { path: string; authorization: string | undefined }[] = [];
  const bodies: Exported[] = [];
  const server = createServer((request, response) => {
    void buffer(request).then((bytes) => {
      const plain = request.headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes;
      requests.push({ path: request.url ?? "", authorization: request.headers.authorization });
      bodies.push(JSON.parse(plain.toString()) as Exported);
      response.writeHead(200, { "Content-Type": "application/json" }).end("{}");
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const spansOf = ({ resourceSpans = [] }: Exported): RecordedSpan[] =>
    resourceSpans.flatMap(({ scopeSpans }) =>
      scopeSpans.flatMap(({ spans }) =>
        spans.map(
          ({ name, kind, traceId, spanId, parentSpanId = "", attributes = [], status, ...times }) => ({
            name,
            kind,
            traceId,
            spanId,
            parentSpanId,
            startNs: BigInt(times.startTimeUnixNano),
            endNs: BigInt(times.endTimeUnixNano),
            attributes: valuesOf(attributes),
            isError: status?.code === ERROR_STATUS,
          }),
        ),
      ),
    );
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    resource: () => {
      const resources = bodies.flatMap(({ resourceSpans = [], resourceMetrics = [] }) =>
        [...resourceSpans, ...resourceMetrics].map(({ resource }) => resource),
      );
      return valuesOf(resources.at(-1)?.attributes ?? []);
    },
    spans: () => bodies.flatMap(spansOf),
    metrics: () =>
      bodies
        .findLast(({ resourceMetrics = [] }) => resourceMetrics.length > 0)
        ?.resourceMetrics?.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
        .map(({ name, description = "", gauge, sum }) => ({
          name,
          help: description,
          type: sum?.isMonotonic === true ? ("counter" as const) : ("gauge" as const),
          samples:
            (gauge ?? sum)?.dataPoints.map(({ attributes = [], asDouble, asInt }) => ({
              labels: valuesOf(attributes),
              value: Number(asDouble ?? asInt),
            })) ?? [],
        })) ?? [],
    logBodies: () =>
      bodies
        .flatMap(({ resourceLogs = [] }) => resourceLogs.flatMap(({ scopeLogs }) => scopeLogs))
        .flatMap(({ logRecords }) => logRecords.map(({ body }) => String(valueOf(body)))),
    text: () => JSON.stringify(bodies),
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function valuesOf(attributes: readonly Attribute[]): Values {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]));
}

function valueOf({ stringValue, intValue, doubleValue, boolValue, arrayValue }: AttributeValue): Value {
  if (arrayValue !== undefined) return arrayValue.values.map(valueOf);
  return stringValue ?? boolValue ?? doubleValue ?? Number(intValue);
}
