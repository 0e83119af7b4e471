import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { readdir } from "node:fs/promises";
import { after, before, describe, it } from "node:test";
import { AgentError } from "../../errors.ts";
import { requestOpenLink } from "../socket/open-link.ts";
import { PortGuard } from "./access/port-guard.ts";
import { systemSocketOwners, type SocketOwners } from "./access/socket-owners.ts";
import type { AgentStatus } from "../../status.ts";
import { startTestServer, type Answer, type RequestOptions, type TestServer } from "./server.test-kit.ts";
import { ruleView } from "./memory-view.test-kit.ts";

const HEADERS: readonly [string, RegExp][] = [
  [
    "content-security-policy",
    /^default-src 'self'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'$/,
  ],
  ["x-content-type-options", /^nosniff$/],
  ["referrer-policy", /^same-origin$/],
  ["cache-control", /no-store|immutable/],
];

function assertProtected(response: Pick<Answer, "headers">): void {
  for (const [name, pattern] of HEADERS) assert.match(String(response.headers[name]), pattern, name);
}

function code(response: Answer): unknown {
  return (JSON.parse(response.body) as { code?: unknown }).code;
}

async function csrf(server: TestServer, headers: Record<string, string> = {}): Promise<string> {
  const response = await server.send("/api/v1/csrf", { headers });
  return (JSON.parse(response.body) as { token: string }).token;
}

describe("the web port, attacked", () => {
  let server: TestServer;
  before(async () => {
    server = await startTestServer();
  });
  after(() => server.stop());

  const own = (): Record<string, string> => ({ Origin: server.url });
  const table: [string, string, () => RequestOptions, number, string?][] = [
    [
      "a foreign Host is refused (DNS rebinding)",
      "/api/v1/status",
      () => ({ headers: { Host: "evil.test" } }),
      403,
      "host_refused",
    ],
    [
      "a Host that only begins like loopback is refused",
      "/ui/",
      () => ({ headers: { Host: "127.0.0.1.evil.test" } }),
      403,
    ],
    ["a Host with user information is refused", "/ui/", () => ({ headers: { Host: "x@127.0.0.1" } }), 403],
    [
      "a foreign Host is refused on the open paths too",
      "/healthz",
      () => ({ headers: { Host: "evil.test" } }),
      403,
    ],
    ["a form post without Origin is refused", "/ui/sync", () => ({ method: "POST" }), 403],
    [
      "a form post with Origin null is refused",
      "/ui/sync",
      () => ({ method: "POST", headers: { Origin: "null" } }),
      403,
    ],
    [
      "a form post from another site is refused",
      "/ui/sync",
      () => ({ method: "POST", headers: { Origin: "https://evil.test" } }),
      403,
    ],
    [
      "a form post from another port of this host is refused",
      "/ui/sync",
      () => ({ method: "POST", headers: { Origin: "http://127.0.0.1:1" } }),
      403,
    ],
    [
      "a form post from https on our host and port is refused",
      "/ui/sync",
      () => ({ method: "POST", headers: { Origin: server.url.replace("http:", "https:") } }),
      403,
    ],
    [
      "a form post from another loopback name than the Host is refused",
      "/ui/sync",
      () => ({ method: "POST", headers: { Origin: server.url.replace("127.0.0.1", "localhost") } }),
      403,
    ],
    [
      "a sync without CSRF token is refused",
      "/api/v1/sync",
      () => ({ method: "POST", headers: own() }),
      403,
      "csrf_refused",
    ],
    [
      "a sync with an invented CSRF token is refused",
      "/api/v1/sync",
      () => ({ method: "POST", headers: { "X-CSRF-Token": "x".repeat(43) } }),
      403,
      "csrf_refused",
    ],
    [
      "the API answers no page of another site",
      "/api/v1/csrf",
      () => ({ headers: { Origin: "https://evil.test" } }),
      403,
      "origin_refused",
    ],
    [
      "the API answers no page of another port of this host",
      "/api/v1/csrf",
      () => ({ headers: { "Sec-Fetch-Site": "same-site" } }),
      403,
      "origin_refused",
    ],
    [
      "a foreign page opens no stream",
      "/ui/sse",
      () => ({ headers: { "Sec-Fetch-Site": "cross-site" } }),
      403,
    ],
    [
      "a foreign page opens no API stream",
      "/api/v1/events",
      () => ({ headers: { "Sec-Fetch-Site": "cross-site" } }),
      403,
    ],
    ["a HEAD request opens no stream", "/ui/sse", () => ({ method: "HEAD" }), 200],
    [
      "a body over 1 MiB is refused by its length",
      "/api/v1/sync",
      () => ({ method: "POST", headers: { "Content-Length": "1048577" }, body: new Uint8Array(1_048_577) }),
      413,
      "body_too_large",
    ],
    [
      "a body over 1 MiB without a length is refused while it is read",
      "/api/v1/sync",
      () => ({
        method: "POST",
        headers: { "Transfer-Encoding": "chunked" },
        body: new Uint8Array(1_100_000),
      }),
      413,
      "body_too_large",
    ],
    ["a dot segment is refused", "/static/../ui/", () => ({}), 400],
    ["an encoded dot segment is refused", "/api/v1/%2e%2e/status", () => ({}), 400, "bad_request"],
    ["an encoded slash is refused", "/api/v1%2fstatus", () => ({}), 400],
    ["an encoded NUL is refused", "/ui/%00", () => ({}), 400],
    ["a backslash is refused", "/ui\\sse", () => ({}), 400],
    ["an empty segment is refused", "//evil.test/", () => ({}), 400],
    ["an absolute target is refused", "http://127.0.0.1/ui/", () => ({}), 400],
    ["an asset outside the list is not served", "/static/package.json", () => ({}), 404],
    ["an unknown path of the API is JSON", "/api/v1/nothing", () => ({}), 404, "not_found"],
    [
      "an unknown method of the API is JSON",
      "/api/v1/status",
      () => ({ method: "DELETE" }),
      404,
      "not_found",
    ],
    ["TRACE is not served", "/", () => ({ method: "TRACE" }), 404],
    ["a header block over 16 KiB is refused", "/", () => ({ headers: { Cookie: "x".repeat(17_000) } }), 431],
  ];
  for (const [name, path, options, status, problem] of table) {
    it(name, async () => {
      const response = await server.send(path, options());
      assert.equal(response.status, status, response.body);
      assertProtected(response);
      if (problem !== undefined) assert.equal(code(response), problem);
      assert.equal(server.view.cycles, 0, "no cycle was started");
    });
  }

  it("a CSRF token works once", async () => {
    const headers = { "X-CSRF-Token": await csrf(server) };
    assert.equal((await server.send("/api/v1/sync", { method: "POST", headers })).status, 202);
    const again = await server.send("/api/v1/sync", { method: "POST", headers });
    assert.equal(again.status, 403);
    assert.equal(code(again), "csrf_refused");
  });

  it("bytes that are not HTTP get a 400 with the same headers", async () => {
    const response = await server.raw("NOT HTTP AT ALL\r\n\r\n");
    assert.match(response, /^HTTP\/1\.1 400 /);
    assert.match(response, /X-Content-Type-Options: nosniff/);
    assert.match(response, /default-src 'self'/);
  });

  it("a request with two Host headers is refused [agent 32.7]", async () => {
    const other = `Host: ${server.host}\r\nHost: evil.test\r\n`;
    for (const hosts of [other, `Host: ${server.host}\r\nhost: ${server.host}\r\n`]) {
      const response = await server.raw(`GET /api/v1/status HTTP/1.1\r\n${hosts}Connection: close\r\n\r\n`);
      assert.match(response, /^HTTP\/1\.1 400 /);
      assert.match(response, /more than one Host/);
    }
  });

  it("a request without Host is refused", async () => {
    assert.match(await server.raw("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"), /^HTTP\/1\.1 400 /);
    assert.match(await server.raw("GET / HTTP/1.0\r\n\r\n"), /^HTTP\/1\.1 400 /);
  });

  it("names and errors of rules cannot become markup", async () => {
    const evil = `"><script>alert(1)</script><img src=x onerror=alert(1)>`;
    const target = { path: evil, format: evil, mode: evil };
    server.view.set({
      rules: [ruleView(evil, { description: evil, error: evil, key: evil, state: "failed", target })],
    });
    const { body } = await server.send("/ui/");
    assert.ok(body.includes("&lt;script&gt;"));
    assert.doesNotMatch(body, /<script>|<img src=x/);
    const stream = await server.open("/ui/sse");
    const [chunk] = (await once(stream, "data")) as [Buffer];
    stream.destroy();
    assert.doesNotMatch(chunk.toString(), /<script>|<img src=x/);
  });

  it("a store address of another scheme is not a link", async () => {
    const { store } = server.view.status();
    server.view.set({ status: { store: { ...store, address: "javascript:alert(1)" } } });
    assert.doesNotMatch((await server.send("/ui/")).body, /href="javascript/);
  });
});

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

describe("live streams", () => {
  /** Reads a stream until its text matches, or it ends. */
  async function readUntil(stream: IncomingMessage, pattern: RegExp): Promise<string> {
    let text = "";
    for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
      text += String(chunk);
      if (pattern.test(text)) break;
    }
    return text;
  }

  it("push the time of the last cycle and the connection on every change [agent 34.1]", async () => {
    await using server = await startTestServer();
    const stream = await server.open("/ui/sse");
    assertProtected({ headers: stream.headers });
    assert.match(String(stream.headers["content-type"]), /^text\/event-stream/);
    await readUntil(
      stream,
      /event: updated\ndata: \{"updated_at":"2026-11-21T09:00:01.000Z","connected":true\}\n\n/,
    );
    const { sync, store } = server.view.status();
    server.view.set({
      status: {
        sync: { ...sync, last_cycle_at: "2026-11-21T10:00:00.000Z" },
        store: { ...store, reachable: false },
      },
    });
    const text = await readUntil(stream, /"connected":false/);
    assert.match(text, /\{"updated_at":"2026-11-21T10:00:00.000Z","connected":false\}/);
    stream.destroy();
  });

  it("of a page carry its header and its own topic, of a rule's page that rule alone [agent 34.1]", async () => {
    await using server = await startTestServer({
      configuration: "store: { driver: embedded }\nenrolments: {a: {engine: ssh}}",
    });
    server.view.set({ rules: [ruleView("npm"), ruleView("other")] });
    const targets = async (show: string): Promise<string[]> => {
      const stream = await server.open(`/ui/sse${show}`);
      let sent = "";
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        sent += chunk.toString();
        if (sent.includes("</hx-partial>")) break;
      }
      stream.destroy();
      return [...sent.matchAll(/hx-target="#([\w-]+)"/g)].map(([, id = ""]) => id.replace(/-YQ$/, "-KEY"));
    };
    const table: [string, string[]][] = [
      ["?show=header", []],
      ["?show=overview", ["live-content"]],
      ["?show=rules", ["live-rules"]],
      ["?show=rule%3Anpm", ["live-rule"]],
      ["?show=rule%3Aabsent", []],
      ["?show=enrolments", ["enrolment-list", "page-KEY"]],
      ["?show=setup", ["setup-KEY", "setup-end"]],
      ["?show=remotes", ["live-remotes"]],
      ["?show=remote%3Aabsent", ["live-remote"]],
      ["?show=agent", ["live-agent"]],
      ["?show=peer-socket", ["live-peer-socket"]],
      [
        "",
        [
          "live-content",
          "live-rules",
          "enrolment-list",
          "page-KEY",
          "setup-KEY",
          "setup-end",
          "live-remotes",
          "live-peer-socket",
          "live-agent",
        ],
      ],
    ];
    for (const [show, own] of table) {
      assert.deepEqual(await targets(show), ["live-state", "live-notice", ...own], show);
    }
  });

  it("give the API's listeners the status as JSON [agent 34.2]", async () => {
    await using server = await startTestServer();
    const stream = await server.open("/api/v1/events");
    const text = await readUntil(stream, /data: .*\n\n/);
    const data = /event: status\ndata: (.*)\n/.exec(text)?.[1] ?? "";
    assert.deepEqual(JSON.parse(data), server.view.status());
    stream.destroy();
  });

  it("end with the token under which they were opened, and go on when it is the same [agent 34.6]", async () => {
    await using server = await startTestServer({ token: "hvs.one" });
    const page = await server.open("/ui/sse");
    const api = await server.open("/api/v1/events");
    let ended = false;
    const both = Promise.all([readUntil(page, /never/), readUntil(api, /never/)]).then(() => (ended = true));
    server.replaceToken("hvs.one");
    const follower = await server.open("/api/v1/events");
    await readUntil(follower, /event: status/);
    assert.equal(ended, false, "renewed, not replaced");
    server.replaceToken("hvs.two");
    await both;
  });

  it("end when the daemon is signed out, and when it stops", async () => {
    await using server = await startTestServer();
    const page = await server.open("/ui/sse");
    const api = await server.open("/api/v1/events");
    const ended = Promise.all([readUntil(page, /never/), readUntil(api, /never/)]);
    server.view.set({ status: { authenticated: false } });
    await assert.doesNotReject(ended);
    server.view.set({ status: { authenticated: true } });
    const last = await server.open("/ui/sse");
    const lastEnded = readUntil(last, /never/);
    await server.stop();
    await assert.doesNotReject(lastEnded);
  });
});

describe("web.require_unlock", () => {
  it("true: asks for a session or the key everywhere but on the open paths [agent 32.13]", async () => {
    await using server = await startTestServer({ requireUnlock: true });
    assert.match((await server.send("/")).body, /agent open/);
    const site = await server.send("/ui/");
    assert.deepEqual([site.status, site.headers.location], [303, "/"]);
    for (const path of ["/api/v1/status", "/api/v1/csrf", "/api/v1/events", "/metrics"]) {
      const response = await server.send(path);
      assert.equal(response.status, 401);
      assert.equal(code(response), "unlock_required");
      assertProtected(response);
    }
    assert.equal((await server.send("/ui/sse")).status, 401);
    assert.equal(
      (await server.send("/ui/sync", { method: "POST", headers: { Origin: server.url } })).status,
      401,
    );
    assert.equal((await server.send("/healthz")).status, 200);
    assert.equal((await server.send("/readyz")).status, 200);
  });

  it("true: the link of 'agent open' admits one browser; a second use ends its session", async () => {
    await using server = await startTestServer({ requireUnlock: true });
    const link = new URL(await requestOpenLink(server.runtimeFolder));
    const opened = await server.send(link.pathname + link.search);
    assert.equal(opened.status, 200);
    const setCookie = String(opened.headers["set-cookie"]);
    assert.match(setCookie, /; HttpOnly; SameSite=Strict$/);
    const cookie = { Cookie: setCookie.split(";")[0] ?? "" };
    assert.equal((await server.send("/ui/", { headers: cookie })).status, 200);
    assert.equal((await server.send("/api/v1/status", { headers: cookie })).status, 200);

    const stream = await server.open("/ui/sse", cookie);
    const ended = once(stream.resume(), "end");
    const again = await server.send(link.pathname + link.search);
    assert.equal(again.status, 403);
    assert.match(again.body, /used before/);
    await ended;
    assert.equal((await server.send("/api/v1/status", { headers: cookie })).status, 401);
    assert.deepEqual(server.warnings, [
      "a link of 'agent open' was used twice; the session that it opened has been ended",
    ]);
  });

  it("true: a HEAD request for the link does not use it [agent 32.15]", async () => {
    await using server = await startTestServer({ requireUnlock: true });
    const link = new URL(await requestOpenLink(server.runtimeFolder));
    const head = await server.send(link.pathname + link.search, { method: "HEAD" });
    assert.deepEqual([head.status, head.headers["set-cookie"]], [200, undefined]);
    assertProtected(head);
    const opened = await server.send(link.pathname + link.search);
    assert.equal(opened.status, 200);
    const cookie = String(opened.headers["set-cookie"]).split(";")[0] ?? "";
    assert.equal((await server.send("/api/v1/status", { headers: { Cookie: cookie } })).status, 200);
  });

  it("true: a wrong key or cookie does not open", async () => {
    await using server = await startTestServer({ requireUnlock: true });
    const port = new URL(server.url).port;
    for (const headers of [{ Authorization: "Bearer x" }, { Cookie: `daemon_session_${port}=x` }]) {
      assert.equal((await server.send("/api/v1/status", { headers })).status, 401);
    }
  });

  it("auto: asks for it if the owner of a connection is unknown, else checks the owner [agent 32.13]", async () => {
    const blind = new PortGuard({ uid: undefined, read: () => Promise.reject(new Error("none")) });
    await using locked = await startTestServer({ guard: blind });
    assert.equal((await locked.send("/api/v1/status")).status, 401);
    await locked.stop();
    await using open = await startTestServer();
    assert.equal((await open.send("/api/v1/status")).status, 200);
  });

  it("false: asks for nothing and warns where the owner cannot be read [agent 32.13]", async () => {
    const blind = new PortGuard({ uid: undefined, read: () => Promise.reject(new Error("none")) });
    await using server = await startTestServer({ guard: blind, requireUnlock: false });
    assert.equal((await server.send("/api/v1/status")).status, 200);
    assert.match(server.warnings.join(), /every user of this host/);
  });

  it("refuses another user with every setting, but answers the probes", async () => {
    let foreign = false;
    const read: SocketOwners["read"] = async (table, localPort) =>
      (await systemSocketOwners.read(table, localPort)).map((record) =>
        foreign ? { ...record, uid: record.uid + 1 } : record,
      );
    for (const requireUnlock of ["auto", true, false] as const) {
      foreign = false;
      const guard = new PortGuard({ uid: systemSocketOwners.uid, read });
      await using server = await startTestServer({ guard, requireUnlock });
      foreign = true;
      const response = await server.send("/api/v1/status");
      assert.equal(response.status, 403);
      assert.equal(code(response), "other_user");
      assertProtected(response);
      const page = await server.send("/ui/");
      assert.equal(page.status, 403);
      assert.match(page.body, /does not come from the user that runs this daemon/);
      assert.equal((await server.send("/static/kit.css")).status, 403);
      assert.equal((await server.send("/healthz")).status, 200);
      assert.equal((await server.send("/readyz")).status, 200);
    }
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
