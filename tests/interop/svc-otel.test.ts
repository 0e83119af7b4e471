import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, it } from "node:test";
import {
  gitEnvironment,
  repositories,
  run,
  startCodeHost,
  startOtlpRecorder,
  startSvc,
  tempFolder,
  type CodeHost,
  type OtlpRecorder,
  type TempFolder,
} from "@devplat/testkit";

let collector: OtlpRecorder;
let codeHost: CodeHost;
let folder: TempFolder;

before(async () => {
  collector = await startOtlpRecorder();
  codeHost = await startCodeHost();
  folder = await tempFolder("svc-otel");
  await codeHost.addRepository("org", "r", { build: (dir) => repositories.linear(dir) });
});
after(async () => {
  await collector.stop();
  await codeHost.stop();
  await folder.remove();
});

it("with OTEL_EXPORTER_OTLP_ENDPOINT requests become spans, and log lines too", async () => {
  const svc = await startSvc({
    codeHost,
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
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

  assert.equal(collector.resource()["service.name"], "git-proxy-test");
  const spans = collector.spans();
  const traced = spans.filter((span) => span.traceId === traceId);
  assert.deepEqual(
    traced.map(({ name, attributes }) => `${name} ${String(attributes["url.path"])}`),
    ["GET /org/r/info/refs", "POST /org/r/git-upload-pack", "POST /org/r/git-upload-pack"],
  );
  for (const span of traced) {
    assert.equal(span.parentSpanId, "b7ad6b7169203331");
    assert.equal(span.attributes["http.response.status_code"], 200);
    assert.ok(span.startNs < span.endNs);
  }
  assert.ok(spans.some(({ attributes }) => attributes["url.path"] === "/healthz"));

  const lines = collector.logBodies();
  for (const line of ["listening", "request", "stopping"]) assert.ok(lines.includes(line), line);

  assert.ok(collector.requests.every(({ authorization }) => authorization === "planted-collector-key"));
  assert.doesNotMatch(collector.text(), /planted/);
  assert.doesNotMatch(svc.log(), /planted/);
});

it("a collector that is down delays no request and no stop, and is logged once", async () => {
  const env = {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://127.0.0.1:1/v1/traces",
    OTEL_BSP_SCHEDULE_DELAY: "50",
  };
  const timeout = { OTEL_EXPORTER_OTLP_TIMEOUT: "200" };
  const svc = await startSvc({ codeHost, env: { ...env, ...timeout } });
  for (let index = 0; index < 5; index += 1) assert.equal((await fetch(`${svc.url}/healthz`)).status, 200);
  await svc.logged(/telemetry is not exported/);
  for (let index = 0; index < 5; index += 1) assert.equal((await fetch(`${svc.url}/healthz`)).status, 200);
  const begun = performance.now();
  assert.equal(await svc.stop(), 0);
  assert.ok(performance.now() - begun < 10_000);
  assert.equal(svc.log().match(/telemetry is/g)?.length, 1, svc.log());
});
