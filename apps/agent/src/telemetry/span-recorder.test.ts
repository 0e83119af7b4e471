import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger } from "@devplat/base";
import { SecretStoreError } from "@devplat/secret-store";
import { startExport } from "@devplat/telemetry";
import { startOtlpRecorder, type RecordedSpan } from "@devplat/testkit";
import { AgentError } from "../errors.ts";
import { OPERATION_CHANNEL, traced, type Facts } from "./operation.ts";
import { SpanRecorder } from "./span-recorder.ts";

/** The spans of this work, by a stand-in for a collector. */
async function spansOf(work: () => Promise<unknown>): Promise<readonly RecordedSpan[]> {
  const collector = await startOtlpRecorder();
  const { tracer, close } = startExport({
    name: "agent",
    version: "1",
    environment: {},
    collector: { endpoint: collector.url, protocol: "http/json", headers: {} },
    traces: true,
    logger: () => silentLogger,
  });
  assert.ok(tracer !== undefined);
  const recorder = new SpanRecorder(tracer);
  recorder.start();
  await work();
  recorder.stop();
  await close();
  await collector.stop();
  return collector.spans();
}

const fail = (error: unknown) => async (): Promise<never> => {
  throw error;
};

describe("SpanRecorder", () => {
  it("makes a span of an operation, with the facts that are known at its end", async () => {
    const facts: Facts<"sync.file"> = { rules: ["one", "two"] };
    const [span, ...more] = await spansOf(() =>
      traced("sync.file", facts, async () => {
        facts.changed = true;
      }),
    );
    assert.deepEqual(more, []);
    assert.equal(span?.name, "sync.file");
    assert.deepEqual(span.attributes, { "agent.rules": ["one", "two"], "agent.changed": true });
    assert.ok(span.endNs >= span.startNs);
  });

  it("makes what an operation runs its children, also when several run concurrently", async () => {
    const cycle = (rule: string): Promise<void> =>
      traced("sync.cycle", {}, async () => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        await traced("sync.rule", { rule }, async () => undefined);
      });
    const spans = await spansOf(() => Promise.all([cycle("a"), cycle("b")]));
    const cycles = spans.filter(({ name }) => name === "sync.cycle");
    const rules = spans.filter(({ name }) => name === "sync.rule");
    assert.deepEqual(
      cycles.map(({ parentSpanId }) => parentSpanId),
      ["", ""],
    );
    assert.deepEqual(
      rules.map(({ parentSpanId }) => parentSpanId).toSorted(),
      cycles.map(({ spanId }) => spanId).toSorted(),
    );
    assert.notEqual(cycles[0]?.traceId, cycles[1]?.traceId);
  });

  const failures: [name: string, error: unknown, type: string, isError: boolean][] = [
    ["the code of a failure", new AgentError("target_refused", "/home/planted"), "target_refused", true],
    ["a store without that secret", new SecretStoreError("not_found", "planted/path"), "not_found", false],
    ["a caller that gave up", new DOMException("planted", "AbortError"), "aborted", false],
    ["a defect", new TypeError("planted"), "internal", true],
    ["something that is no error", "planted", "internal", true],
  ];
  for (const [name, error, type, isError] of failures) {
    it(`tells of ${name}, without its text`, async () => {
      const spans = await spansOf(async () => {
        await assert.rejects(traced("store.read", { driver: "vault" }, fail(error)));
      });
      assert.deepEqual(
        spans.map((span) => [span.attributes, span.isError]),
        [[{ "agent.driver": "vault", "error.type": type }, isError]],
      );
    });
  }

  it("leaves nothing behind when it stops", async () => {
    const spans = await spansOf(async () => undefined);
    assert.deepEqual(spans, []);
    assert.equal(OPERATION_CHANNEL.hasSubscribers, false);
    assert.equal(await traced("sync.cycle", {}, async () => "result"), "result");
    await assert.rejects(traced("sync.cycle", {}, fail(new Error("as it was"))), /as it was/);
  });
});
