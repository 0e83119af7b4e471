import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { silentLogger } from "@devplat/base";
import { startOtlpRecorder } from "@devplat/testkit";
import { startExport, type ExportOptions } from "./start-export.ts";

const FAMILIES = [
  { name: "app_up", help: "1 if up.", type: "gauge", samples: [{ labels: { host: "h" }, value: 1 }] },
  { name: "app_jobs_total", help: "Jobs.", type: "counter", samples: [{ labels: {}, value: 2.5 }] },
] as const;

function options(endpoint: string, more: Partial<ExportOptions> = {}): ExportOptions {
  return {
    name: "app",
    version: "1.2.3",
    environment: {},
    collector: { endpoint, protocol: "http/json", headers: {} },
    logger: () => silentLogger,
    ...more,
  };
}

describe("startExport", () => {
  it("exports spans, log records and metrics at the end", async () => {
    const recorder = await startOtlpRecorder();
    const metrics = { read: async () => FAMILIES, intervalMs: 60_000 };
    const exported = startExport(
      options(recorder.url, { traces: true, logs: true, metrics, resource: { "service.name": "mine" } }),
    );
    exported.tracer?.startSpan("work").end();
    exported.logs?.emit({ body: "a line" });
    await exported.close();
    assert.deepEqual(
      recorder.spans().map(({ name }) => name),
      ["work"],
    );
    assert.deepEqual(recorder.logBodies(), ["a line"]);
    assert.deepEqual(recorder.metrics(), FAMILIES);
    assert.deepEqual(recorder.resource(), { "service.name": "mine", "service.version": "1.2.3" });
    await recorder.stop();
  });

  it("exports metrics at its interval, and goes on after they could not be read once", async () => {
    const recorder = await startOtlpRecorder();
    let reads = 0;
    const read = async () => {
      reads += 1;
      if (reads === 1) throw new Error("not yet");
      return FAMILIES;
    };
    const exported = startExport(options(recorder.url, { metrics: { read, intervalMs: 50 } }));
    while (recorder.metrics().length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.ok(reads > 1);
    await exported.close();
    await recorder.stop();
  });

  it("exports no spans with the sampler always_off", async () => {
    const recorder = await startOtlpRecorder();
    const environment = { OTEL_TRACES_SAMPLER: "always_off" };
    const exported = startExport(options(recorder.url, { traces: true, environment }));
    exported.tracer?.startSpan("work").end();
    await exported.close();
    assert.deepEqual(recorder.requests, []);
    await recorder.stop();
  });

  it("keeps a limited number of spans for a collector that does not answer, and ends in time", async () => {
    // It accepts every connection and answers nothing.
    let requests = 0;
    const silent = createServer(() => void (requests += 1)).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const endpoint = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const exported = startExport(options(endpoint, { traces: true }));
    for (let index = 0; index < 20_000; index += 1) exported.tracer?.startSpan("work").end();
    const begun = performance.now();
    await exported.close();
    const took = performance.now() - begun;
    assert.ok(took < 6000, `${took} ms`);
    // 2048 spans wait at most, and 512 are in one request.
    assert.ok(requests <= 5, `${requests} requests`);
    silent.closeAllConnections();
    silent.close();
  });
});
