import { describe, it } from "node:test";
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { Metrics } from "./metrics.ts";
import { ObjectTierMetrics } from "./object-tier-metrics.ts";
import { SharedFetchMetrics } from "./shared-fetch-metrics.ts";

const DEPLOY = resolve(import.meta.dirname, "../../../../deploy");
/** Labels that a scrape adds, and those of the parts of a histogram. */
const LABELS_OF_SCRAPES = ["instance", "job", "le"];
/** A metric, and the selector in braces behind it. */
const SELECTOR = /\b((?:svc|nodejs|process)_\w+)(?:\{([^}]*)\})?/g;

const Rules = z.object({
  groups: z.array(
    z.object({ rules: z.array(z.object({ record: z.string().optional(), expr: z.string() })) }),
  ),
});
const Dashboard = z.object({
  panels: z.array(
    z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })).default([]) }),
  ),
});

/** Each metric of the service with its labels. A histogram has three names. */
async function metrics(): Promise<Map<string, readonly string[]>> {
  const { registry } = new Metrics({ version: "1" });
  // They register themselves.
  void [new ObjectTierMetrics(registry, []), new SharedFetchMetrics(registry)];
  const known = new Map<string, readonly string[]>();
  for (const { name, type, labelNames } of registry.getMetricsAsArray() as unknown as Described[]) {
    const parts = String(type) === "histogram" ? ["_bucket", "_count", "_sum"] : [""];
    for (const part of parts) known.set(`${name}${part}`, labelNames ?? []);
  }
  return known;
}
interface Described {
  readonly name: string;
  readonly type: unknown;
  readonly labelNames?: readonly string[];
}

/** Names of metrics and labels in the expressions that the service does not have. */
function faults(expressions: readonly string[], known: Map<string, readonly string[]>): string[] {
  return expressions.flatMap((expression) =>
    [...expression.matchAll(SELECTOR)].flatMap(([, name = "", braces = ""]) => {
      const labels = known.get(name);
      if (labels === undefined) return [`${name}: no such metric`];
      return [...braces.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)]
        .map(([, label = ""]) => label)
        .filter((label) => !labels.includes(label) && !LABELS_OF_SCRAPES.includes(label))
        .map((label) => `${name}: has no label ${label}`);
    }),
  );
}

describe("deploy", () => {
  it("has a dashboard that asks for metrics and labels of the service", async () => {
    const { panels } = Dashboard.parse(JSON.parse(await readFile(`${DEPLOY}/grafana/svc.json`, "utf8")));
    const expressions = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    assert.deepEqual(faults(expressions, await metrics()), []);
    assert.ok(expressions.length > 30);
  });

  it("shows every metric of the service on the dashboard", async () => {
    const text = await readFile(`${DEPLOY}/grafana/svc.json`, "utf8");
    const missing = [...(await metrics()).keys()]
      .filter((name) => name.startsWith("svc_") && !/_(?:count|sum)$/.test(name))
      .filter((name) => !text.includes(name));
    assert.deepEqual(
      missing,
      ["svc_cache_lsrefs_total"],
      "svc_upstream_request_duration_seconds counts these, too",
    );
  });

  it("has alerts that ask for metrics and labels of the service, or for recorded ones", async () => {
    const { groups } = Rules.parse(parse(await readFile(`${DEPLOY}/prometheus/svc.rules.yaml`, "utf8")));
    const rules = groups.flatMap((group) => group.rules);
    const recorded = new Set(rules.flatMap(({ record }) => record ?? []));
    const expressions = rules.map(({ expr }) => expr);
    assert.deepEqual(faults(expressions, await metrics()), []);
    const used = expressions.flatMap((expression) => expression.match(/\bsvc:\w+:\w+/g) ?? []);
    assert.ok(used.length > 3);
    for (const name of used) assert.ok(recorded.has(name), name);
  });

  it("notices a metric and a label that do not exist", async () => {
    const known = await metrics();
    assert.deepEqual(faults(['rate(svc_cache_fetches{result="hit"}[5m])'], known), [
      "svc_cache_fetches: no such metric",
    ]);
    assert.deepEqual(faults(['svc_cache_fetch_total{outcome="hit", job=~"a|b"}'], known), [
      "svc_cache_fetch_total: has no label outcome",
    ]);
  });
});
