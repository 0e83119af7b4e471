import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { AgentStatus } from "../../apps/agent/src/status.ts";
import { metricFamilies } from "../../apps/agent/src/surfaces/http-api/status/metrics.ts";
import { OPERATIONS } from "../../apps/agent/src/telemetry/operation.ts";
import { Metrics } from "../../apps/svc/src/telemetry/metrics.ts";
import { ObjectTierMetrics } from "../../apps/svc/src/telemetry/object-tier-metrics.ts";
import { SharedFetchMetrics } from "../../apps/svc/src/telemetry/shared-fetch-metrics.ts";
import { ROOT } from "./sources.ts";

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** The rows of a table below a heading, each as its cells without the marks of code. */
function rowsBelow(text: string, heading: string): string[][] {
  const [, section = ""] = text.split(`\n${heading}\n`);
  const [own = ""] = section.split(/\n## /);
  return [...own.matchAll(/^\| (`.*) \|$/gm)].map(([, row = ""]) =>
    row.split("|").map((cell) => cell.replaceAll("`", "").trim()),
  );
}

/** A daemon with every part on, as far as its metrics read it. */
const EVERYTHING_ON = {
  version: "1",
  uptime_seconds: 1,
  authenticated: true,
  store: { reachable: true },
  sync: { state: "idle", last_cycle_at: "2026-01-01T00:00:00Z", stale_since: null },
  rules: { r: { state: "ok", last_synced: "2026-01-01T00:00:00Z", consecutive_failures: 0 } },
  remotes: [{ enabled: true, host: "h", state: "connected", reconnects: 0, tokens: { lent: [] } }],
  ssh_agent: {
    signatures: { signed: 0, refused: 0 },
    sources: [{ name: "s", identities: [] }],
    questions: [],
  },
  docker: { enabled: true, volumes: [{ name: "v", mounts: 0, secrets: 0, error: null }] },
} as unknown as AgentStatus;

describe("documented telemetry", () => {
  it("docs/agent/monitoring.md lists the metrics of the daemon with their labels", () => {
    const listed = rowsBelow(read("docs/agent/monitoring.md"), "## Metrics");
    const families = metricFamilies(EVERYTHING_ON, 0);
    assert.deepEqual(
      listed.map(([name, type, labels]) => [name, type, labels]),
      families.map(({ name, type, samples }) => [
        name,
        type,
        Object.keys(samples[0]?.labels ?? {}).join(", "),
      ]),
    );
  });

  it("docs/agent/monitoring.md lists the spans of the daemon with their attributes", () => {
    const listed = rowsBelow(read("docs/agent/monitoring.md"), "## Spans");
    assert.deepEqual(
      listed.map(([name, attributes]) => [name, attributes]),
      Object.entries(OPERATIONS).map(([name, facts]) => [
        name,
        facts.map((fact: string) => (fact.includes(".") ? fact : `agent.${fact}`)).join(", "),
      ]),
    );
  });

  it("docs/svc/monitoring.md lists the metrics of the service with their types", () => {
    const { registry } = new Metrics({ version: "1" });
    void [new ObjectTierMetrics(registry, []), new SharedFetchMetrics(registry)];
    const known = registry
      .getMetricsAsArray()
      .map(({ name, type }) => `${name} ${String(type)}`)
      .filter((line) => line.startsWith("svc_"));
    // A row can have several metrics of one kind.
    const listed = rowsBelow(read("docs/svc/monitoring.md"), "## Metrics").flatMap(([names = "", type]) =>
      names.split(", ").map((name) => `${name} ${type}`),
    );
    assert.deepEqual(listed.toSorted(), known.toSorted());
  });
});
