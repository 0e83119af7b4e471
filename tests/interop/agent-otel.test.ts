import assert from "node:assert/strict";
import { createServer, type RequestListener, type Server } from "node:http";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { after, before, describe, it } from "node:test";
import {
  AGENT_SOURCES_LAUNCHER,
  startOtelcol,
  startOtlpRecorder,
  startVault,
  tempFolder,
  until,
  type OtlpRecorder,
  type Otelcol,
  type TempFolder,
} from "@devplat/testkit";
import { daemon, Home, webUrl, type RunningAgent } from "./agent-stand.ts";

/** The recorder takes the data that the real collector passes on, in JSON. */
let recorder: OtlpRecorder;
let collector: Otelcol;
let folder: TempFolder;
before(async () => {
  folder = await tempFolder("agent-otel");
  recorder = await startOtlpRecorder();
  collector = await startOtelcol(recorder.url);
});
after(async () => {
  await collector.stop();
  await recorder.stop();
  await folder.remove();
});

/** Spans wait for this time, in milliseconds. */
const FAST = { OTEL_BSP_SCHEDULE_DELAY: "100" };
const EMBEDDED = `store: {driver: embedded}
api: {enabled: true}
rules: [{name: first, key: planted/path, target: {path: ~/planted-file.json, format: json}}]
`;

async function home(name: string, config: string, env: NodeJS.ProcessEnv = {}): Promise<Home> {
  const place = new Home(join(folder.path, name), {
    XDG_RUNTIME_DIR: join(folder.path, name),
    ...FAST,
    ...env,
  });
  await place.configure(config);
  return place;
}

const started = (place: Home): Promise<RunningAgent> =>
  daemon(place, async (log) => log.includes("daemon started"), { logLevel: "info" });

/** The lines of the log about the export. */
const linesOf = (running: RunningAgent): string[] =>
  running
    .log()
    .split("\n")
    .filter((line) => /telemetry/.test(line));

describe("agent run with observability", () => {
  it("exports spans and the metrics of /metrics to a real collector, without a secret", async () => {
    await using stack = new AsyncDisposableStack();
    const vault = stack.adopt(await startVault(), (each) => each.stop());
    const store = {
      address: vault.address,
      username: "ada",
      auth_method: "token",
    };
    const place = await home(
      "vault",
      `store: ${JSON.stringify(store)}
web: {enabled: true, listen: "127.0.0.1:0"}
observability: {enabled: true, endpoint: "${collector.url}", service_name: laptop, headers: {x-key: planted-header}}
rules: [{name: first, key: planted/path, target: {path: ~/planted-file.json, format: json}, run: {command: [echo, planted-argument]}}]
enrolments: {mine/planted: {engine: copy, from: planted/path}}
`,
    );
    await vault.request("POST", "sys/policies/acl/all", {
      policy: `path "kv/*" { capabilities = ["create", "read", "update", "delete", "list"] }`,
    });
    const token = await vault.createUserToken("ada", ["all"]);
    await place.write(".daemon-token", token);
    await vault.put("users/ada/planted/path", { planted_field: "planted-value" });
    const running = await started(place);
    const url = await webUrl(running);
    await until(async () =>
      (await place.read("planted-file.json").catch(() => "")).includes("planted-value"),
    );
    const get = async (path: string): Promise<string> => await (await fetch(url + path)).text();
    assert.match(await get("/api/v1/secrets/planted/path"), /planted_field/);
    await get("/planted/nowhere?token=planted-query");
    await until(() => recorder.spans().some(({ name }) => name === "enrolment.run"));
    const prometheus = await get("/metrics");
    assert.equal(await running.stop(), 0);

    const spans = recorder.spans();
    const names = new Set(spans.map(({ name }) => name));
    for (const name of [
      "auth.sign_in",
      "sync.cycle",
      "sync.rule",
      "sync.file",
      "sync.command",
      "enrolment.run",
      "http.request",
      "store.metadata",
      "store.read",
      "store.write",
    ])
      assert.ok(names.has(name), `${name} is not in ${[...names].join()}`);
    const byId = new Map(spans.map((span) => [span.spanId, span]));
    const rule = spans.find(({ name }) => name === "sync.rule");
    assert.equal(rule?.attributes["agent.rule"], "first");
    assert.equal(byId.get(rule.parentSpanId)?.name, "sync.cycle");
    const file = spans.find(({ name }) => name === "sync.file");
    assert.deepEqual(file?.attributes, {
      "agent.rules": ["first"],
      "agent.changed": true,
      "agent.failed": 0,
    });
    const routes = spans
      .filter(({ name }) => name === "http.request")
      .map(
        ({ attributes }) =>
          `${String(attributes["http.route"])} ${String(attributes["http.response.status_code"])}`,
      );
    assert.ok(routes.includes("/api/v1/secrets/* 200"), routes.join());
    assert.ok(routes.includes("(none) 404"), routes.join());

    // One set of metrics, two ways out. The values of one moment differ from those of the next.
    const shown = [...prometheus.matchAll(/^# HELP (\w+) (.*)\n# TYPE \w+ (\w+)$/gm)];
    assert.ok(shown.length > 8, prometheus);
    assert.deepEqual(
      recorder.metrics().map(({ name, help, type }) => [name, help, type]),
      shown.map(([, name, help, type]) => [name, help, type]),
    );
    const seriesOf = (text: string): string[] =>
      text.split("\n").flatMap((line) => line.match(/^\w+/)?.[0] ?? []);
    assert.deepEqual(
      recorder.metrics().flatMap(({ name, samples }) => samples.map(() => name)),
      seriesOf(prometheus),
    );
    assert.equal(recorder.resource()["service.name"], "laptop");
    assert.doesNotMatch(recorder.text(), /planted/);
    assert.ok(!recorder.text().includes(token));
    assert.doesNotMatch(running.log(), /planted-(?:header|value|query)/);
  });

  it("starts and stops the export when the configuration is read again", async () => {
    const place = await home("reload", EMBEDDED);
    const running = await started(place);
    const reload = async (section: string, line: string): Promise<void> => {
      await place.configure(EMBEDDED + section);
      process.kill(running.pid ?? 0, "SIGHUP");
      await until(
        () => running.log().includes(line),
        () => running.log(),
      );
    };
    await reload(
      `observability: {enabled: true, endpoint: "${collector.url}", service_name: again}\n`,
      "is exported",
    );
    // A daemon at rest has no spans.
    await place.ok("sync");
    await until(
      () => recorder.resource()["service.name"] === "again",
      () => recorder.text(),
    );
    await place.configure(`${EMBEDDED}observability: {enabled: false}\n`);
    process.kill(running.pid ?? 0, "SIGHUP");
    // The end of an export sends the metrics once more.
    await until(() => recorder.metrics().some(({ name }) => name === "agent_info"));
    await place.ok("sync");
    assert.equal(await running.stop(), 0);
    assert.doesNotMatch(running.log(), /apply after the next start/);
  });

  // Servers that behave badly on purpose: no real collector does.
  const hostile: [name: string, listener: RequestListener | undefined, reason: RegExp][] = [
    ["is down", undefined, /ECONNREFUSED/],
    ["never answers", () => undefined, /no answer in time/],
    ["answers 401 with markup", (_, response) => void response.writeHead(401).end("planted"), /answered 401/],
    [
      "sends a body without end",
      (_, response) => {
        response.writeHead(200);
        const timer = setInterval(() => response.write("planted".repeat(1000)), 5);
        response.on("close", () => clearInterval(timer));
      },
      /more than 65536 bytes|no answer in time/,
    ],
  ];
  for (const [index, [name, listener, reason]] of hostile.entries()) {
    it(`syncs, stops in time and logs one line when the collector ${name}`, async () => {
      let server: Server | undefined;
      let endpoint = "http://127.0.0.1:1";
      if (listener !== undefined) {
        server = createServer(listener).listen(0, "127.0.0.1");
        await once(server, "listening");
        endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      }
      const env = { OTEL_EXPORTER_OTLP_TIMEOUT: "500" };
      const section = `observability: {enabled: true, endpoint: "${endpoint}", headers: {authorization: k}}\n`;
      const place = await home(`hostile-${index}`, EMBEDDED + section, env);
      const running = await started(place);
      try {
        for (const round of [1, 2]) {
          const begun = performance.now();
          await place.ok("secrets", "put", "planted/path", `token=${round}`);
          await until(async () =>
            (await place.read("planted-file.json").catch(() => "")).includes(`"${round}"`),
          );
          assert.ok(performance.now() - begun < 10_000);
        }
        await until(
          () => linesOf(running).length === 2,
          () => running.log(),
        );
      } finally {
        const begun = performance.now();
        assert.equal(await running.stop(), 0);
        assert.ok(performance.now() - begun < 10_000, running.log());
        server?.closeAllConnections();
        server?.close();
      }
      const [begin, failure, ...more] = linesOf(running);
      assert.match(begin ?? "", /telemetry is exported/);
      assert.match(failure ?? "", reason);
      // Metrics are sent at the end, and may fail then: that is another signal.
      assert.ok(more.length <= 1 && more.every((line) => line.includes('"metrics"')), more.join("\n"));
      assert.doesNotMatch(running.log(), /planted(?!\/path|-file)/);
    });
  }

  it("loads no code of OpenTelemetry while it is off", async () => {
    const list = join(folder.path, "loaded");
    const hooks = pathToFileURL(join(import.meta.dirname, "loaded-modules.ts")).href;
    const env = {
      XDG_RUNTIME_DIR: join(folder.path, "off"),
      NODE_OPTIONS: `--import ${hooks}`,
      LOADED_MODULES: list,
      OTEL_EXPORTER_OTLP_ENDPOINT: recorder.url,
    };
    // Runs from the sources: a release is a few bundles.
    const place = new Home(join(folder.path, "off"), env, AGENT_SOURCES_LAUNCHER);
    await place.configure(EMBEDDED);
    const running = await started(place);
    assert.equal(await running.stop(), 0);
    const loaded = (await readFile(list, "utf8")).split("\n");
    assert.ok(loaded.length > 50, `${loaded.length} modules`);
    assert.deepEqual(
      loaded.filter((file) => /opentelemetry|packages\/telemetry/.test(file)),
      [],
    );
    assert.deepEqual(linesOf(running), []);
  });
});
