import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { signalSettings, type Environment, type SignalSettings } from "./otlp-settings.ts";

const ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT";

describe("signalSettings", () => {
  const cases: [name: string, environment: Environment, expected: Partial<SignalSettings>][] = [
    [
      "has the defaults of the specification",
      {},
      { url: "http://localhost:4318/v1/traces", protocol: "http/protobuf", timeoutMs: 10_000, headers: {} },
    ],
    [
      "adds the path of the signal to the general address",
      { [ENDPOINT]: "https://c.example/otlp/" },
      { url: "https://c.example/otlp/v1/traces" },
    ],
    [
      "takes the address of a signal as it is",
      { [ENDPOINT]: "https://c.example", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://t.example/in" },
      { url: "http://t.example/in" },
    ],
    [
      "ignores what belongs to another signal",
      { OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: "http://t.example/in", OTEL_EXPORTER_OTLP_LOGS_HEADERS: "a=b" },
      { url: "http://localhost:4318/v1/traces", headers: {} },
    ],
    [
      "merges headers, decoded, the signal's own last",
      { OTEL_EXPORTER_OTLP_HEADERS: "a=1,b=x%20y", OTEL_EXPORTER_OTLP_TRACES_HEADERS: "a=2" },
      { headers: { a: "2", b: "x y" } },
    ],
    [
      "reads protocol, time limit and compression",
      {
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        OTEL_EXPORTER_OTLP_TIMEOUT: "500",
        OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
      },
      { protocol: "http/json", timeoutMs: 500, isCompressed: true },
    ],
    ["limits the time limit", { OTEL_EXPORTER_OTLP_TIMEOUT: "999999" }, { timeoutMs: 30_000 }],
    [
      "says what it ignores",
      {
        [ENDPOINT]: "collector:4317",
        OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
        OTEL_EXPORTER_OTLP_TIMEOUT: "-1",
        OTEL_EXPORTER_OTLP_CERTIFICATE: "/nowhere/ca.pem",
      },
      {
        url: "http://localhost:4318/v1/traces",
        protocol: "http/protobuf",
        tls: undefined,
        problems: [
          "OTEL_EXPORTER_OTLP_PROTOCOL is ignored: expected http/protobuf or http/json",
          "OTEL_EXPORTER_OTLP_ENDPOINT is ignored: expected an address such as http://host:4318",
          "OTEL_EXPORTER_OTLP_TIMEOUT is ignored: expected a number of milliseconds",
          "OTEL_EXPORTER_OTLP_CERTIFICATE is ignored: cannot read /nowhere/ca.pem (ENOENT)",
        ],
      },
    ],
  ];
  for (const [name, environment, expected] of cases) {
    it(name, () => {
      const settings = signalSettings("traces", environment);
      for (const [key, value] of Object.entries(expected))
        assert.deepEqual(settings[key as keyof SignalSettings], value, key);
    });
  }

  it("takes address, headers and protocol of a given collector, and of no variable", () => {
    const environment = {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://other.example",
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=other",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf",
      OTEL_EXPORTER_OTLP_TIMEOUT: "700",
    };
    const collector = {
      endpoint: "http://own.example/",
      protocol: "http/json",
      headers: { k: "v" },
    } as const;
    const { url, protocol, headers, timeoutMs } = signalSettings("metrics", environment, collector);
    assert.deepEqual(
      [url, protocol, headers, timeoutMs],
      ["http://own.example/v1/metrics", "http/json", { k: "v" }, 700],
    );
  });
});
