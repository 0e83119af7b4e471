import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { after, before, it } from "node:test";
import { gunzipSync } from "node:zlib";
import {
  gitEnvironment,
  repositories,
  run,
  startCodeHost,
  startSvc,
  tempFolder,
  type CodeHost,
  type TempFolder,
} from "@devplat/testkit";

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: number };
}
interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
}
interface Exported {
  readonly resourceSpans?: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[];
  }[];
  readonly resourceLogs?: readonly {
    readonly scopeLogs: readonly { readonly logRecords: readonly { readonly body: Attribute["value"] }[] }[];
  }[];
}

// A stand-in for a collector. It only records the data that arrives by OTLP over HTTP with JSON.
const received: { path: string; authorization: string | undefined; body: Exported }[] = [];
let collector: Server;
let codeHost: CodeHost;
let folder: TempFolder;

before(async () => {
  collector = createServer((request, response) => {
    void buffer(request).then((bytes) => {
      const plain = request.headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes;
      const { authorization } = request.headers;
      received.push({
        path: request.url ?? "",
        authorization,
        body: JSON.parse(plain.toString()) as Exported,
      });
      response.writeHead(200, { "Content-Type": "application/json" }).end("{}");
    });
  }).listen(0, "127.0.0.1");
  await once(collector, "listening");
  codeHost = await startCodeHost();
  folder = await tempFolder("svc-otel");
  await codeHost.addRepository("org", "r", { build: (dir) => repositories.linear(dir) });
});
after(async () => {
  collector.close();
  await codeHost.stop();
  await folder.remove();
});

const textOf = (attributes: readonly Attribute[], key: string): string | undefined => {
  const value = attributes.find((attribute) => attribute.key === key)?.value;
  return value?.stringValue ?? value?.intValue?.toString();
};

it("with OTEL_EXPORTER_OTLP_ENDPOINT requests become spans, and log lines too", async () => {
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const svc = await startSvc({
    codeHost,
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=planted-collector-key",
      OTEL_SERVICE_NAME: "git-proxy-test",
    },
  });
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  const cloned = await run(
    "git",
    [
      "-c",
      `http.extraHeader=traceparent: 00-${traceId}-b7ad6b7169203331-01`,
      "clone",
      "-q",
      `${svc.url}/org/r`,
      join(folder.path, "clone"),
    ],
    { env: gitEnvironment() },
  );
  assert.equal(cloned.code, 0, cloned.stderr);
  await fetch(`${svc.url}/healthz?secret=planted-query`);
  assert.equal(await svc.stop(), 0);

  const resources = received.flatMap(({ body }) => body.resourceSpans ?? []);
  assert.equal(textOf(resources[0]?.resource.attributes ?? [], "service.name"), "git-proxy-test");
  const spans = resources.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
  const traced = spans.filter((span) => span.traceId === traceId);
  assert.deepEqual(
    traced.map((span) => `${span.name} ${textOf(span.attributes, "url.path")}`),
    ["GET /org/r/info/refs", "POST /org/r/git-upload-pack", "POST /org/r/git-upload-pack"],
  );
  for (const span of traced) {
    assert.equal(span.parentSpanId, "b7ad6b7169203331");
    assert.equal(textOf(span.attributes, "http.response.status_code"), "200");
    assert.ok(BigInt(span.startTimeUnixNano) < BigInt(span.endTimeUnixNano));
  }
  assert.ok(spans.some((span) => textOf(span.attributes, "url.path") === "/healthz"));

  const lines = received
    .flatMap(({ body }) => body.resourceLogs ?? [])
    .flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords))
    .map(({ body }) => body.stringValue);
  for (const line of ["listening", "request", "stopping"]) assert.ok(lines.includes(line), line);

  assert.ok(received.every(({ authorization }) => authorization === "planted-collector-key"));
  assert.doesNotMatch(JSON.stringify(received.map(({ body }) => body)), /planted/);
  assert.doesNotMatch(svc.log(), /planted/);
});

it("a collector that cannot be reached delays no request and no stop", async () => {
  const svc = await startSvc({ codeHost, env: { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" } });
  assert.equal((await fetch(`${svc.url}/healthz`)).status, 200);
  assert.equal(await svc.stop(), 0);
});
