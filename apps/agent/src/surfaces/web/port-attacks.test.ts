import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, it } from "node:test";
import { startTestServer, type RequestOptions, type TestServer } from "./server.test-kit.ts";
import { ruleView } from "./memory-view.test-kit.ts";
import { assertProtected, code, csrf } from "./responses.test-kit.ts";

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
    const target = { path: evil, format: evil, mode: evil, mounted: false };
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
