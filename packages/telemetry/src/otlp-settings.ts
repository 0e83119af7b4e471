import { readFileSync } from "node:fs";
import { systemCode } from "@devplat/base";
import type { TlsSettings } from "@devplat/http-client";
import { parseKeyPairsIntoRecord } from "@opentelemetry/core";

export type Signal = "traces" | "metrics" | "logs";
export const PROTOCOLS = ["http/protobuf", "http/json"] as const;
export type Protocol = (typeof PROTOCOLS)[number];
export type Environment = Readonly<Record<string, string | undefined>>;

/** A collector as a program's own configuration names it. */
export interface CollectorSettings {
  /** Address to which `/v1/traces`, `/v1/metrics` and `/v1/logs` are added. */
  readonly endpoint: string;
  readonly protocol: Protocol;
  readonly headers: Readonly<Record<string, string>>;
}

/** Place and form of the requests of one signal. */
export interface SignalSettings {
  readonly url: string;
  readonly protocol: Protocol;
  readonly headers: Readonly<Record<string, string>>;
  /** Time limit for one batch with all its attempts, in milliseconds. */
  readonly timeoutMs: number;
  readonly isCompressed: boolean;
  readonly tls: TlsSettings | undefined;
  /** Variables that cannot be used, each with the reason. */
  readonly problems: readonly string[];
}

/** Defaults of the specification ("OpenTelemetry Protocol Exporter"). */
const DEFAULT_ENDPOINT = "http://localhost:4318";
const DEFAULT_TIMEOUT_MS = 10_000;
/** A longer time limit would keep more batches in memory; in milliseconds. */
const MAX_TIMEOUT_MS = 30_000;

/**
 * Reads the standard variables `OTEL_EXPORTER_OTLP_*`. One with the name of the signal comes before the general one.
 *
 * @param collector takes the place of the variables for address, protocol and headers
 */
export function signalSettings(
  signal: Signal,
  environment: Environment,
  collector?: CollectorSettings,
): SignalSettings {
  const problems: string[] = [];
  const named = (name: string): [variable: string, value: string] | undefined => {
    const variables = [`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_${name}`, `OTEL_EXPORTER_OTLP_${name}`];
    const variable = variables.find((each) => (environment[each] ?? "").trim() !== "");
    return variable === undefined ? undefined : [variable, (environment[variable] ?? "").trim()];
  };
  const choose = <Value>(name: string, read: (value: string) => Value | undefined, expected: string) => {
    const [variable, text] = named(name) ?? [];
    if (variable === undefined || text === undefined) return undefined;
    const value = read(text);
    if (value === undefined) problems.push(`${variable} is ignored: expected ${expected}`);
    return value;
  };
  const file = (name: string): Buffer | undefined => {
    const [variable, path] = named(name) ?? [];
    if (variable === undefined || path === undefined) return undefined;
    try {
      return readFileSync(path);
    } catch (error) {
      problems.push(`${variable} is ignored: cannot read ${path} (${systemCode(error) ?? "unknown error"})`);
      return undefined;
    }
  };
  const fromVariables = (): CollectorSettings & { readonly isWhole: boolean } => {
    const protocol = choose("PROTOCOL", protocolOf, PROTOCOLS.join(" or "));
    const whole = environment[`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`] ?? "";
    const general = parseKeyPairsIntoRecord(environment["OTEL_EXPORTER_OTLP_HEADERS"]);
    const own = parseKeyPairsIntoRecord(environment[`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_HEADERS`]);
    return {
      endpoint: choose("ENDPOINT", addressOf, "an address such as http://host:4318") ?? DEFAULT_ENDPOINT,
      // The address of one signal is complete.
      isWhole: addressOf(whole) !== undefined,
      protocol: protocol ?? "http/protobuf",
      headers: { ...general, ...own },
    };
  };
  const { endpoint, protocol, headers, isWhole } =
    collector === undefined ? fromVariables() : { ...collector, isWhole: false };
  const timeoutMs = choose("TIMEOUT", millisecondsOf, "a number of milliseconds");
  const compression = choose("COMPRESSION", compressionOf, "gzip or none");
  const [ca, cert, key] = [file("CERTIFICATE"), file("CLIENT_CERTIFICATE"), file("CLIENT_KEY")];
  const tls = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
  return {
    url: isWhole ? endpoint : `${endpoint.replace(/\/+$/, "")}/v1/${signal}`,
    protocol,
    headers,
    timeoutMs: Math.min(timeoutMs ?? DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS),
    isCompressed: compression === "gzip",
    tls: Object.keys(tls).length === 0 ? undefined : tls,
    problems,
  };
}

function protocolOf(text: string): Protocol | undefined {
  return PROTOCOLS.find((each) => each === text);
}

function compressionOf(text: string): string | undefined {
  return ["gzip", "none"].find((each) => each === text);
}

function millisecondsOf(text: string): number | undefined {
  const value = Number(text);
  return value > 0 ? value : undefined;
}

function addressOf(text: string): string | undefined {
  const url = URL.parse(text);
  return url !== null && ["http:", "https:"].includes(url.protocol) ? text : undefined;
}
