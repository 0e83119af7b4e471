import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { readdir } from "node:fs/promises";
import { after, before, describe, it } from "node:test";
import { AgentError } from "../../errors.ts";
import { requestOpenLink } from "../socket/open-link.ts";
import type { AgentStatus } from "../../status.ts";
import { startTestServer, type TestServer } from "./server.test-kit.ts";
import { ruleView } from "./memory-view.test-kit.ts";
import { assertProtected, code, csrf } from "./responses.test-kit.ts";

describe("GET /", () => {
  it("leads to the site when signed in, and shows how to sign in otherwise", async () => {
    await using server = await startTestServer({ texts: { login: "Ask **ops**", secretView: "See *here*" } });
    const signedIn = await server.send("/");
    assert.deepEqual([signedIn.status, signedIn.headers.location], [303, "/ui/"]);
    assert.match((await server.send("/ui/")).body, /See <em>here<\/em>/);

    server.view.set({ status: { authenticated: false } });
    const login = await server.send("/");
    assert.equal(login.status, 200);
    assert.match(login.body, /\.daemon-token/);
    assert.match(login.body, /Ask <strong>ops<\/strong>/);
    assert.doesNotMatch(login.body, /<script|vault\.example\.test|\bada\b/);
    for (const path of ["/ui", "/ui/", "/ui/secrets/a/b", "/ui/none"]) {
      const site = await server.send(path);
      assert.equal(site.status, 303);
      assert.equal(site.headers.location, path === "/ui" ? "/ui/" : "/");
    }
  });
});

describe("the JSON API", () => {
  let server: TestServer;
  before(async () => {
    server = await startTestServer();
    server.view.set({ rules: [ruleView("npm"), ruleView("kube", { state: "failed", error: "broken" })] });
  });
  after(() => server.stop());

  it("gives the whole status when signed in", async () => {
    const response = await server.send("/api/v1/status");
    assert.deepEqual(JSON.parse(response.body), server.view.status());
    assertProtected(response);
  });

  it("gives the rules with their state [agent 24.4]", async () => {
    const { rules } = JSON.parse((await server.send("/api/v1/rules")).body) as {
      rules: { name: string; state: string }[];
    };
    assert.deepEqual(
      rules.map(({ name, state }) => [name, state]),
      [
        ["npm", "ok"],
        ["kube", "failed"],
      ],
    );
  });

  it("starts a cycle and answers its job, or its result with wait=true [agent 24.11]", async () => {
    const started = await server.send("/api/v1/sync", {
      method: "POST",
      headers: { "X-CSRF-Token": await csrf(server) },
    });
    assert.deepEqual([started.status, JSON.parse(started.body)], [202, { job: "cycle-1" }]);
    const waited = await server.send("/api/v1/sync?wait=true", {
      method: "POST",
      headers: { "X-CSRF-Token": await csrf(server) },
    });
    assert.equal(waited.status, 200);
    assert.deepEqual((JSON.parse(waited.body) as { job: string; changed: string[] }).changed, []);
  });

  it("answers sync_failed without the reason when a cycle cannot run", async () => {
    server.view.cycle = () => Promise.reject(new Error("token hvs.SECRET was refused"));
    for (const query of ["", "?wait=true"]) {
      const headers = { "X-CSRF-Token": await csrf(server) };
      const response = await server.send(`/api/v1/sync${query}`, { method: "POST", headers });
      assert.equal(response.status, query === "" ? 202 : 502);
      assert.doesNotMatch(response.body, /SECRET/);
    }
  });

  it("answers a fault of its own with internal, and tells its text to the log alone [agent 35.28]", async () => {
    server.view.cycle = () => {
      throw new TypeError("token hvs.SECRET");
    };
    const headers = { "X-CSRF-Token": await csrf(server) };
    const response = await server.send("/api/v1/sync", { method: "POST", headers });
    assert.equal(response.status, 500);
    assert.equal(code(response), "internal");
    assertProtected(response);
    assert.doesNotMatch(response.body, /SECRET/);
    assert.deepEqual(server.warnings, ["request failed"]);
  });

  it("serves an asset under its digest for good, and no other name", async () => {
    const path = /\/static\/kit\.[0-9a-f]{8}\.css/.exec((await server.send("/ui/")).body)?.[0] ?? "";
    const response = await server.send(path);
    assert.equal(response.status, 200);
    assert.equal(response.headers["cache-control"], "private, max-age=31536000, immutable");
    assert.equal(response.headers["content-type"], "text/css; charset=utf-8");
    assertProtected(response);
  });

  it("says little and does nothing without a store token [agent 24.3]", async () => {
    server.view.set({ status: { authenticated: false } });
    const status = JSON.parse((await server.send("/api/v1/status")).body) as object;
    assert.deepEqual(Object.keys(status), ["version", "time", "authenticated", "auth", "bootstrap"]);
    for (const path of ["/api/v1/rules", "/api/v1/events"]) {
      const response = await server.send(path);
      assert.equal(response.status, 401);
      assert.equal(code(response), "not_signed_in");
    }
    const cycles = server.view.cycles;
    const headers = { "X-CSRF-Token": await csrf(server), Origin: server.url };
    assert.equal((await server.send("/api/v1/sync", { method: "POST", headers })).status, 401);
    assert.equal((await server.send("/ui/sync", { method: "POST", headers })).status, 401);
    assert.equal((await server.send("/ui/sse")).status, 401);
    assert.equal(server.view.cycles, cycles);
    server.view.set({ status: { authenticated: true } });
  });

  it("answers removed endpoints with 404 and their replacement", async () => {
    const table = [
      ["POST", "/auth/ldap/login", "POST /login/ldap"],
      ["GET", "/auth/ldap/status", "GET /login/ldap"],
      ["POST", "/auth/ldap/mfa", "POST /login/ldap/totp"],
      ["POST", "/auth/token/login", "POST /login/token"],
      ["GET", "/api/v1/enrol", "/setup/ and /ui/enrolments/"],
      ["GET", "/api/v1/enrol/github/main", "/setup/ and /ui/enrolments/"],
    ] as const;
    for (const [method, path, replacement] of table) {
      const response = await server.send(path, { method, headers: { Origin: server.url } });
      assert.equal(response.status, 404);
      assert.ok(response.body.includes(replacement), path);
    }
  });

  it("says whether it is healthy and ready, and degrades when stale [agent 24.19]", async () => {
    assert.deepEqual(JSON.parse((await server.send("/healthz")).body), { status: "ok" });
    const { sync, store } = server.view.status();
    const since = { stale_since: sync.last_cycle_at };
    const away = { ...store, reachable: false };
    const states: [Partial<AgentStatus>, number, string][] = [
      [{}, 200, "ready"],
      [{ sync: { ...sync, state: "running" } }, 200, "ready"],
      [{ sync: { ...sync, ...since, state: "stale" } }, 503, "stale"],
      // While the next try is under way, and before any cycle has noticed.
      [{ sync: { ...sync, ...since, state: "running" } }, 503, "stale"],
      [{ store: away }, 503, "stale"],
      [{ store: away, sync: { ...sync, state: "running" } }, 503, "stale"],
      [{ store: away, authenticated: false, sync: { ...sync, state: "waiting" } }, 503, "stale"],
      [{ authenticated: false, sync: { ...sync, ...since, state: "running" } }, 503, "waiting"],
      [{ sync: { ...sync, state: "waiting" } }, 503, "waiting"],
      [{ sync: { ...sync, last_cycle_at: null } }, 503, "starting"],
    ];
    for (const [change, status, word] of states) {
      server.view.set({ status: { authenticated: true, sync, store, ...change } });
      const response = await server.send("/readyz");
      assert.deepEqual(
        [response.status, JSON.parse(response.body)],
        [status, { status: word }],
        JSON.stringify(change),
      );
      const { body } = await server.send("/metrics");
      assert.match(body, new RegExp(`^agent_stale ${word === "stale" ? 1 : 0}$`, "m"));
    }
    server.view.set({ status: { authenticated: true, sync, store } });
  });

  it("gives metrics, with labels that a rule's name cannot leave [agent 24.19]", async () => {
    server.view.set({
      rules: [ruleView('a"b\\c\nd'), ruleView("kube", { state: "failed", last_synced: null })],
    });
    const { body, headers } = await server.send("/metrics");
    assert.match(String(headers["content-type"]), /^text\/plain; version=0\.0\.4/);
    assert.match(body, /^agent_rules\{state="failed"\} 1$/m);
    assert.match(body, /^agent_rule_last_synced_timestamp_seconds\{rule="a\\"b\\\\c\\nd"\} 1795251600$/m);
    assert.doesNotMatch(body, /last_synced_timestamp_seconds\{rule="kube"\}/);
  });
});

describe("a store that is away", () => {
  it("is said on every page, with the reason [agent 35.17]", async () => {
    await using server = await startTestServer({
      editablePaths: ["tools"],
      configuration: `store: { driver: embedded }
enrolments: { tools/key: { engine: ssh } }`,
    });
    await server.store.write("tools/s", new Map([["a", "1"]]));
    server.view.set({ rules: [ruleView("kube")] });
    const pages = [
      "/ui/",
      "/ui/secrets/",
      "/ui/secrets/tools/s",
      "/ui/secrets/tools/s?history=true",
      "/ui/secrets/?q=s",
      "/ui/rules/",
      "/ui/rules/kube/",
      "/ui/enrolments/",
      "/ui/enrolments/ssh/tools/key/",
      "/ui/config/",
      "/setup/",
    ];
    const { store, sync } = server.view.status();
    const notice =
      /<p class="banner bad">\s*The secrets store has not answered since[^]*Connection refused\./;
    const stale = /<p class="banner warn">No cycle has been completed since/;
    // A page's own request notes what it learns; from here on that is nothing new.
    await server.send("/ui/secrets/");
    for (const path of pages) {
      const show = async (): Promise<string> => {
        server.view.set({
          status: { store: { ...store, reachable: false, last_error: "Connection refused" } },
        });
        const { status, body } = await server.send(path);
        assert.equal(status, 200, path);
        return body;
      };
      assert.equal([...(await show()).matchAll(new RegExp(notice, "g"))].length, 1, path);
      server.view.set({ status: { store, sync: { ...sync, stale_since: sync.last_cycle_at } } });
      assert.match((await server.send(path)).body, stale, path);
      server.view.set({ status: { store, sync } });
      assert.doesNotMatch((await server.send(path)).body, /class="banner (?:bad|warn)">/, path);
    }
  });
});

describe("POST /ui/sync", () => {
  it("starts a cycle from the own page and leads back to it", async () => {
    await using server = await startTestServer();
    const response = await server.send("/ui/sync", { method: "POST", headers: { Origin: server.url } });
    assert.deepEqual([response.status, response.headers.location], [303, "/ui/"]);
    assert.equal(server.view.cycles, 1);
  });

  it("leads back even if the cycle fails", async () => {
    await using server = await startTestServer({ listen: "localhost:0" });
    server.view.cycle = () => Promise.reject(new Error("no"));
    assert.equal(
      (await server.send("/ui/sync", { method: "POST", headers: { Origin: server.url } })).status,
      303,
    );
  });
});

describe("WebServer.listen", () => {
  it("names the port and its owner when the port is in use", async () => {
    const other = createServer();
    other.listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    await assert.rejects(startTestServer({ listen: `127.0.0.1:${port}` }), (error) => {
      assert.ok(error instanceof AgentError && error.code === "port_in_use");
      assert.ok(error.message.includes(`port ${port} is in use by process ${process.pid} (`), error.message);
      return true;
    });
    other.close();
  });

  it("refuses an address that is not loopback", async () => {
    await assert.rejects(startTestServer({ listen: "0.0.0.0:0" }), { code: "listen_refused" });
  });

  it("serves both addresses of localhost [agent 32.11]", async () => {
    await using server = await startTestServer({ listen: "localhost:0" });
    const { hostname, port } = new URL(server.url);
    assert.equal(hostname, "localhost");
    for (const address of ["127.0.0.1", "[::1]"]) {
      const response = await fetch(`http://${address}:${port}/api/v1/status`);
      assert.equal(response.status, 200, address);
    }
  });

  it("refuses localhost when another program has the port on [::1] [agent 32.11]", async () => {
    const other = createServer();
    other.listen(0, "::1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    await assert.rejects(startTestServer({ listen: `localhost:${port}` }), (error) => {
      assert.ok(error instanceof AgentError && error.code === "port_in_use");
      assert.ok(error.message.startsWith(`Cannot listen on [::1]:${port}: `), error.message);
      return true;
    });
    const again = createServer();
    again.listen(port, "127.0.0.1");
    await once(again, "listening");
    again.close();
    other.close();
  });

  it("serves IPv6 loopback", async () => {
    await using server = await startTestServer({ listen: "[::1]:0" });
    assert.match(server.url, /^http:\/\/\[::1\]:\d+$/);
    assert.equal((await server.send("/api/v1/status")).status, 200);
  });

  it("takes the key away at the end", async () => {
    await using server = await startTestServer();
    assert.deepEqual((await readdir(server.runtimeFolder)).toSorted(), ["web.key", "web.url"]);
    const folder = server.runtimeFolder;
    await server.stop();
    await assert.rejects(requestOpenLink(folder), { code: "daemon_unreachable" });
  });
});
