import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { silentLogger, type Logger } from "@devplat/base";
import { startOtlpRecorder, type OtlpRecorder } from "@devplat/testkit";
import { observabilitySection, type ObservabilitySection } from "../config/sections/observability-section.ts";
import { OPERATION_CHANNEL, traced } from "./operation.ts";
import { Telemetry } from "./telemetry.ts";

const section = (values: object): ObservabilitySection => observabilitySection.parse(values);
const on = (collector: OtlpRecorder, more = {}): ObservabilitySection =>
  section({ enabled: true, endpoint: collector.url, protocol: "http/json", ...more });

function started(environment: NodeJS.ProcessEnv = {}) {
  const lines: string[] = [];
  const note = (fields: object, message: string) => lines.push(`${message} ${JSON.stringify(fields)}`);
  const logger: Logger = { ...silentLogger, info: note, warn: note };
  const families = [
    { name: "agent_up", help: "1.", type: "gauge", samples: [{ labels: {}, value: 1 }] },
  ] as const;
  const telemetry = new Telemetry({ environment, version: "1", logger, metrics: async () => families });
  return { telemetry, lines };
}

describe("Telemetry", () => {
  afterEach(() => assert.equal(OPERATION_CHANNEL.hasSubscribers, false));

  it("exports metrics and spans under the name of the section, with its headers", async () => {
    const collector = await startOtlpRecorder();
    const { telemetry } = started();
    await telemetry.configure(on(collector, { service_name: "laptop", headers: { authorization: "key" } }));
    await traced("sync.cycle", {}, async () => undefined);
    await telemetry.close();
    await collector.stop();
    assert.deepEqual(
      collector.spans().map(({ name }) => name),
      ["sync.cycle"],
    );
    assert.deepEqual(
      collector.metrics().map(({ name }) => name),
      ["agent_up"],
    );
    assert.equal(collector.resource()["service.name"], "laptop");
    assert.match(String(collector.resource()["service.instance.id"]), /^[0-9a-f-]{36}$/);
    assert.ok(collector.requests.every(({ authorization }) => authorization === "key"));
  });

  it("does nothing unless it is on, nor with OTEL_SDK_DISABLED", async () => {
    const collector = await startOtlpRecorder();
    const { telemetry, lines } = started({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    await telemetry.configure(section({}));
    await telemetry.configure(section({ endpoint: collector.url }));
    assert.equal(OPERATION_CHANNEL.hasSubscribers, false);
    await telemetry.close();
    const disabled = started({ OTEL_SDK_DISABLED: "TRUE" });
    await disabled.telemetry.configure(on(collector));
    assert.equal(OPERATION_CHANNEL.hasSubscribers, false);
    await disabled.telemetry.close();
    await collector.stop();
    assert.deepEqual([collector.requests, lines, disabled.lines], [[], [], []]);
  });

  it("takes up a changed section: another collector, then none", async () => {
    const [one, two] = [await startOtlpRecorder(), await startOtlpRecorder()];
    const { telemetry, lines } = started();
    const run = (rule: string) => traced("sync.rule", { rule }, async () => undefined);
    await telemetry.configure(on(one));
    await run("first");
    await telemetry.configure(on(one));
    await run("second");
    await telemetry.configure(on(two));
    await run("third");
    await telemetry.configure(section({}));
    await run("fourth");
    await telemetry.close();
    await Promise.all([one.stop(), two.stop()]);
    const rulesOf = (collector: OtlpRecorder) =>
      collector.spans().map(({ attributes }) => attributes["agent.rule"]);
    assert.deepEqual([rulesOf(one), rulesOf(two)], [["first", "second"], ["third"]]);
    assert.equal(lines.length, 2, lines.join("\n"));
  });

  it("goes on without an export when its settings cannot be used", async () => {
    const { telemetry, lines } = started();
    // The schema refuses this address. A defect must not reach the daemon.
    await telemetry.configure({ ...section({}), enabled: true, endpoint: "no address" });
    await telemetry.close();
    assert.match(lines.join("\n"), /telemetry cannot be exported/);
  });
});
