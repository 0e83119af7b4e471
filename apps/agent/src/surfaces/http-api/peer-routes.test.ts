import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import type { Desktop } from "../../desktop/desktop.ts";
import type { DesktopOutcome } from "../../desktop/program.ts";
import { startTestServer, type Answer, type TestServer } from "../web/server.test-kit.ts";

const FORM = "application/x-www-form-urlencoded";
const BROWSE = "/api/v1/remote/browse";
const NOTIFY = "/api/v1/remote/notify";
const CLIPBOARD = "/api/v1/remote/clipboard";
const KIB_64 = 64 * 1024;

/** A desktop that notes what it is asked. */
class NotedDesktop implements Desktop {
  readonly opened: string[] = [];
  readonly raised: unknown[] = [];
  readonly copied: string[] = [];
  outcome: () => DesktopOutcome | Promise<DesktopOutcome> = () => "done";

  async open(url: string): Promise<DesktopOutcome> {
    this.opened.push(url);
    return await this.outcome();
  }

  async raise(notification: unknown): Promise<DesktopOutcome> {
    this.raised.push(notification);
    return await this.outcome();
  }

  async copy(text: { reveal(): string }): Promise<"copied" | "no_program" | "failed"> {
    this.copied.push(text.reveal());
    const outcome = await this.outcome();
    return outcome === "done" ? "copied" : outcome;
  }

  get calls(): number {
    return this.opened.length + this.raised.length + this.copied.length;
  }
}

function code(response: Answer): unknown {
  return (JSON.parse(response.body) as { code?: unknown }).code;
}

describe("the peer actions of the JSON API", () => {
  let desktop: NotedDesktop;
  let server: TestServer;
  beforeEach(async () => {
    desktop = new NotedDesktop();
    server = await startTestServer({ desktop });
    // Nobody needs to be signed in to the store.
    server.view.set({ status: { authenticated: false } });
  });
  // Each test ends its own.
  const ended = async (action: () => Promise<void>): Promise<void> => {
    try {
      await action();
    } finally {
      await server.stop();
    }
  };
  const post = (
    path: string,
    body: string | Uint8Array,
    headers: Record<string, string> = {},
  ): Promise<Answer> =>
    server.send(path, { method: "POST", body, headers: { "Content-Type": FORM, ...headers } });

  it("remote/browse opens the URL, without a CSRF token and without an Origin [agent 29.2]", () =>
    ended(async () => {
      const response = await post(BROWSE, "url=https%3A%2F%2Fexample.com%2F%3Fa%3D1%26b");
      assert.deepEqual([response.status, response.body], [200, '{"status":"opened"}']);
      assert.deepEqual(desktop.opened, ["https://example.com/?a=1&b"]);
    }));

  it("remote/notify raises the notification", () =>
    ended(async () => {
      const response = await post(NOTIFY, "level=warning&title=a+b&body=%3Cc%3E&action_url=http://h/");
      assert.deepEqual([response.status, response.body], [200, '{"status":"raised"}']);
      assert.deepEqual(desktop.raised, [
        { level: "warning", title: "a b", body: "<c>", actionUrl: "http://h/" },
      ]);
    }));

  it("remote/clipboard writes CRLF, tabs, a byte order mark and 64 KiB unchanged [agent 29.11]", () =>
    ended(async () => {
      for (const text of ["a\r\nb\t \n", "\uFEFFü", "%41+&=", "é".repeat(KIB_64 / 2)]) {
        const response = await post(CLIPBOARD, `text=${encodeURIComponent(text)}`);
        assert.deepEqual([response.status, response.body], [200, '{"status":"copied"}']);
        assert.equal(desktop.copied.at(-1), text);
      }
    }));

  const refused: [string, string, string | Uint8Array, number][] = [
    ["browse: file scheme never reaches the system", BROWSE, "url=file:///hunter2", 400],
    ["browse: custom scheme never reaches the system", BROWSE, "url=hunter2:x", 400],
    ["browse: no host", BROWSE, "url=https://", 400],
    ["browse: embedded user:password", BROWSE, "url=https://a:hunter2@h/", 400],
    ["browse: no url", BROWSE, "", 400],
    ["browse: the query string is ignored", `${BROWSE}?url=https://example.com/`, "", 400],
    ["browse: url given twice", BROWSE, "url=https://a/&url=https://b/", 400],
    ["notify: level not one of the four", NOTIFY, "level=hunter2&title=t", 400],
    ["notify: the query string is ignored", `${NOTIFY}?level=info&title=t`, "level=info", 400],
    ["notify: empty title", NOTIFY, "level=info&title=", 400],
    ["notify: title of control characters alone", NOTIFY, "level=info&title=%07%0a", 400],
    ["notify: action_url with browse's allowlist", NOTIFY, "level=info&title=t&action_url=file:///x", 400],
    ["clipboard: empty", CLIPBOARD, "text=", 400],
    ["clipboard: over 64 KiB", CLIPBOARD, `text=${"x".repeat(KIB_64 + 1)}`, 400],
    ["clipboard: over 64 KiB in bytes", CLIPBOARD, `text=${"%C3%A9".repeat(KIB_64 / 2)}x`, 400],
    ["clipboard: an interior NUL", CLIPBOARD, "text=a%00hunter2", 400],
    ["clipboard: not valid UTF-8, encoded", CLIPBOARD, "text=hunter2%ff", 400],
    ["clipboard: not valid UTF-8, raw", CLIPBOARD, Buffer.from("text=\xff", "latin1"), 400],
    ["clipboard: broken percent-encoding", CLIPBOARD, "text=100%", 400],
    ["clipboard: form over its limit", CLIPBOARD, `text=${"x".repeat(256 * 1024)}`, 413],
  ];
  for (const [name, path, body, status] of refused) {
    it(`refused without quoting it: ${name} [agent 29.1]`, () =>
      ended(async () => {
        const response = await post(path, body);
        assert.equal(response.status, status);
        assert.equal(code(response), status === 413 ? "body_too_large" : "bad_request");
        assert.doesNotMatch(response.body, /hunter2/);
        assert.equal(desktop.calls, 0);
      }));
  }

  it("another content type than a form's is refused", () =>
    ended(async () => {
      for (const type of ["application/json", "text/plain", "multipart/form-data; boundary=x"]) {
        const response = await post(BROWSE, "url=https://example.com/", { "Content-Type": type });
        assert.deepEqual([response.status, code(response)], [415, "unsupported_media_type"]);
      }
      assert.equal(desktop.calls, 0);
    }));

  it("Origin check: accepts each loopback name, with the daemon's own port only [agent 29.3]", () =>
    ended(async () => {
      const { port } = new URL(server.url);
      for (const origin of ["127.0.0.1", "localhost", "[::1]"].map((host) => `http://${host}:${port}`)) {
        const response = await post(BROWSE, "url=https://example.com/", { Origin: origin });
        assert.equal(response.status, 200, origin);
      }
      const calls = desktop.calls;
      for (const origin of [
        "null",
        "https://evil.test",
        `http://evil.test:${port}`,
        `https://127.0.0.1:${port}`,
        `http://127.0.0.1:${Number(port) + 1}`,
        "http://127.0.0.1",
        `http://127.0.0.1.evil.test:${port}`,
        `http://localhost:${port}@evil.test`,
        `http://localhost:${port}/`,
        `http://user@localhost:${port}`,
        "file://",
        "",
      ]) {
        const response = await post(BROWSE, "url=https://example.com/", { Origin: origin });
        assert.deepEqual([response.status, code(response)], [403, "origin_refused"], origin);
      }
      assert.equal(desktop.calls, calls);
    }));

  it("a browser that sends no Origin and says that another site asks is refused", () =>
    ended(async () => {
      for (const site of ["cross-site", "same-site"]) {
        const response = await post(BROWSE, "url=https://example.com/", { "Sec-Fetch-Site": site });
        assert.deepEqual([response.status, code(response)], [403, "origin_refused"]);
      }
      assert.equal(desktop.calls, 0);
    }));

  it("a second concurrent request gets 503, and the next one after the end is done [agent 29.4]", () =>
    ended(async () => {
      const accessCheck = Promise.withResolvers<DesktopOutcome>();
      const started = Promise.withResolvers<void>();
      desktop.outcome = () => {
        started.resolve();
        return accessCheck.promise;
      };
      const first = post(BROWSE, "url=https://example.com/1");
      await started.promise;
      const second = await post(BROWSE, "url=https://example.com/2");
      assert.deepEqual([second.status, code(second)], [503, "busy"]);
      accessCheck.resolve("done");
      assert.equal((await first).status, 200);
      assert.equal((await post(BROWSE, "url=https://example.com/3")).status, 200);
      assert.deepEqual(desktop.opened, ["https://example.com/1", "https://example.com/3"]);
    }));

  it("pipelined: the second gets 503 while the first runs; responses keep their order", () =>
    ended(async () => {
      desktop.outcome = async (): Promise<DesktopOutcome> => {
        await new Promise((resolve) => setImmediate(resolve));
        return "done";
      };
      const body = "url=https://example.com/";
      const head = `Host: ${server.host}\r\nContent-Type: ${FORM}\r\nContent-Length: ${body.length}`;
      const one = `POST ${BROWSE} HTTP/1.1\r\n${head}\r\n\r\n${body}`;
      const last = `POST ${BROWSE} HTTP/1.1\r\n${head}\r\nConnection: close\r\n\r\n${body}`;
      const statuses = [...(await server.raw(one + last)).matchAll(/HTTP\/1\.1 (\d+)/g)].map(
        ([, status]) => status,
      );
      assert.equal(statuses[0], "200");
      assert.ok(statuses[1] === "503" || statuses[1] === "200");
      assert.equal(desktop.opened.length, statuses.filter((status) => status === "200").length);
    }));

  for (const outcome of ["failed", "no_program"] as const) {
    it(`an action that the desktop has not done is 502, scrubbed of the text: ${outcome} [agent 29.13]`, () =>
      ended(async () => {
        desktop.outcome = () => outcome;
        for (const [path, body] of [
          [BROWSE, "url=https://example.com/hunter2"],
          [NOTIFY, "level=info&title=hunter2"],
          [CLIPBOARD, "text=hunter2"],
        ] as const) {
          const response = await post(path, body);
          assert.deepEqual([response.status, code(response)], [502, "action_failed"]);
          assert.doesNotMatch(response.body, /hunter2/);
        }
        assert.doesNotMatch(server.log.join("\n"), /hunter2/);
      }));
  }

  it("log lines record level and lengths only [agent 29.12]", () =>
    ended(async () => {
      await post(NOTIFY, "level=error&title=hunter2&body=ab");
      await post(CLIPBOARD, "text=hunter2");
      assert.deepEqual(
        server.log.filter((line) => line.includes("peer action")),
        [
          '{"action":"notify","level":"error","lengths":{"title":7,"body":2,"action_url":0},"by":"api","message":"peer action done"}',
          '{"action":"clipboard","length":7,"by":"api","message":"peer action done"}',
        ],
      );
    }));

  it("GET is not found", () =>
    ended(async () => {
      for (const path of [BROWSE, NOTIFY, CLIPBOARD]) assert.equal((await server.send(path)).status, 404);
    }));
});

describe("the peer actions where the port is locked", () => {
  let server: TestServer;
  before(async () => {
    server = await startTestServer({ requireUnlock: true });
  });
  after(() => server.stop());

  it("need the web key or a session, like every request", async () => {
    const options = { method: "POST", body: "url=https://example.com/", headers: { "Content-Type": FORM } };
    const refused = await server.send(BROWSE, options);
    assert.deepEqual([refused.status, code(refused)], [401, "unlock_required"]);
  });
});
