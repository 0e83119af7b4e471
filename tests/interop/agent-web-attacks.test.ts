import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { parseFields } from "@devplat/secret-store";
import { launchChromium, run, type Browser } from "@devplat/testkit";
import { TestOauthServer } from "../../apps/agent/src/enrol/oauth-server.test-kit.ts";
import { ruleView } from "../../apps/agent/src/surfaces/web/memory-view.test-kit.ts";
import { FOREIGN_TOKEN } from "../../apps/agent/src/surfaces/web/login.test-kit.ts";
import {
  startTestServer,
  type RequestOptions,
  type TestServer,
} from "../../apps/agent/src/surfaces/web/server.test-kit.ts";
import { runAsNobody } from "./agent-web/other-user.ts";
import { openWatchedPage } from "./agent-web/watched-page.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;
const EVIL = `"><img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
const TOKEN = "hvs.held";

/** The attacks on the web port; each is refused, and nothing has happened. */
describe("attacks on the web port, each refused [agent 32.17]", { timeout: TIMEOUT_MS }, () => {
  let server: TestServer;
  let out: TestServer;
  before(async () => {
    server = await startTestServer({ editablePaths: ["tools"], token: TOKEN });
    await server.store.write("tools/a", parseFields('{"a":"kept"}'));
    out = await startTestServer();
    out.view.set({ status: { authenticated: false } });
  });
  after(async () => {
    await server.stop();
    await out.stop();
  });

  const form = (body: string, Origin?: string): RequestOptions => ({
    method: "POST",
    body,
    headers: Origin === undefined ? {} : { Origin },
  });
  const table: [attack: string, path: string, options: () => RequestOptions, statuses: number[]][] = [
    [
      "DNS rebinding: a foreign name for our address",
      "/api/v1/token",
      () => ({ headers: { Host: "evil.test" } }),
      [403],
    ],
    [
      "DNS rebinding: with the matching Origin",
      "/ui/sync",
      () => ({ ...form("", "http://evil.test"), headers: { Host: "evil.test", Origin: "http://evil.test" } }),
      [403],
    ],
    [
      "forged Host: one that begins like loopback",
      "/ui/",
      () => ({ headers: { Host: "127.0.0.1.evil.test" } }),
      [403],
    ],
    [
      "forged Host: X-Forwarded-Host does not count",
      "/ui/sync",
      () => ({ ...form(""), headers: { Origin: "http://evil.test", "X-Forwarded-Host": "evil.test" } }),
      [403],
    ],
    ["cross-origin POST: a form of another site", "/ui/sync", () => form("", "https://evil.test"), [403]],
    [
      "cross-origin POST: deleting a secret",
      "/ui/secrets/tools/a",
      () => form("action=delete&confirm=a", "https://evil.test"),
      [403],
    ],
    ["cross-origin POST: signing out", "/ui/sign-out", () => form("", "http://127.0.0.1:1"), [403]],
    ["missing Origin: a form without one", "/ui/sync", () => form(""), [403]],
    ["missing Origin: null, of a sandboxed frame", "/ui/sync", () => form("", "null"), [403]],
    ["CSRF: no token", "/api/v1/sync", () => ({ method: "POST" }), [403]],
    [
      "CSRF: a token in the query or the body",
      "/api/v1/sync?X-CSRF-Token=x&token=x",
      () => form("X-CSRF-Token=x"),
      [403],
    ],
    [
      "reading across origins: the CSRF token",
      "/api/v1/csrf",
      () => ({ headers: { Origin: "https://evil.test" } }),
      [403],
    ],
    [
      "reading across origins: the store token",
      "/api/v1/token",
      () => ({ headers: { "Sec-Fetch-Site": "same-site" } }),
      [403],
    ],
    ["path tricks: leaving the editable subtree", "/api/v1/secrets/tools/../elsewhere", () => ({}), [400]],
    ["path tricks: the same, encoded", "/api/v1/secrets/tools/%2e%2e/elsewhere", () => ({}), [400]],
    ["path tricks: an encoded slash", "/ui/secrets/tools%2fa", () => ({}), [400]],
    ["path tricks: an encoded backslash", "/ui/secrets/tools%5ca", () => ({}), [400]],
    ["path tricks: NUL", "/ui/secrets/tools/a%00b", () => ({}), [400]],
    ["path tricks: an empty segment", "/ui/secrets/tools//a", () => ({}), [400]],
    ["path tricks: bytes that are no UTF-8", "/ui/secrets/tools/%ff", () => ({}), [400]],
    ["path tricks: an enrolment's page", "/ui/enrolments/ssh/../../config/", () => ({}), [400]],
    ["path tricks: an asset outside", "/static/..%2f..%2fpackage.json", () => ({}), [400, 404]],
  ];
  for (const [attack, path, options, statuses] of table) {
    it(attack, async () => {
      const answer = await server.send(path, options());
      assert.ok(statuses.includes(answer.status), `${answer.status} ${answer.body}`);
      assert.ok(!answer.body.includes(TOKEN) && !answer.body.includes("kept"));
      assert.equal(server.view.cycles, 0, "no cycle was started");
      assert.equal(server.signedOut, 0, "nobody was signed out");
      assert.equal((await server.store.read("tools/a")).version, 1, "the secret is as it was");
    });
  }

  it("CSRF reuse: a token that was used [agent 32.2]", async () => {
    await using fresh = await startTestServer();
    const { token } = JSON.parse((await fresh.send("/api/v1/csrf")).body) as { token: string };
    const options = { method: "POST", headers: { "X-CSRF-Token": token } };
    assert.equal((await fresh.send("/api/v1/sync", options)).status, 202);
    assert.equal((await fresh.send("/api/v1/sync", options)).status, 403);
    assert.equal(fresh.view.cycles, 1);
  });

  it("a foreign identity's token at the login form [agent 31.9]", async () => {
    const options = { method: "POST", headers: { Origin: out.url }, body: `token=${FOREIGN_TOKEN}` };
    assert.equal((await out.send("/login/token", options)).status, 403);
    assert.equal(out.view.status().authenticated, false);
  });

  it("signed out: every page, part, stream and route of the API", async () => {
    for (const path of ["/ui/", "/ui/secrets/tools/a", "/ui/config/", "/setup/", "/ui/enrolments/"]) {
      assert.equal((await out.send(path)).headers.location, "/", path);
    }
    for (const path of [
      "/api/v1/token",
      "/api/v1/rules",
      "/api/v1/config",
      "/api/v1/secrets/",
      "/api/v1/events",
      "/ui/sse",
    ]) {
      assert.equal((await out.send(path)).status, 401, path);
    }
  });

  it("another local user's connection", async () => {
    const curl = async (
      runAs: (command: string, args: readonly string[]) => Promise<{ stdout: string }>,
      path: string,
    ) => (await runAs("curl", ["-s", "-o", "/dev/null", "-w", "%{http_code}", server.url + path])).stdout;
    for (const path of [
      "/",
      "/ui/",
      "/api/v1/token",
      "/api/v1/csrf",
      "/api/v1/secrets/tools/a?reveal=true",
    ]) {
      assert.equal(await curl(runAsNobody, path), "403", path);
    }
    assert.equal(await curl((command, args) => run(command, args), "/api/v1/token"), "200", "its own user");
  });
});

describe("DNS rebinding in Chromium", { timeout: TIMEOUT_MS }, () => {
  it("a foreign name that has come to mean this host reads nothing and changes nothing [agent 32.6]", async () => {
    await using server = await startTestServer({ token: TOKEN, editablePaths: ["tools"] });
    const browser = await launchChromium(["--host-resolver-rules=MAP rebound.test 127.0.0.1"]);
    try {
      const page = await browser.newPage();
      const url = `http://rebound.test:${new URL(server.url).port}`;
      const response = await page.goto(`${url}/ui/`);
      assert.equal(response?.status(), 403);
      // To the browser it is one site: it reads every response, and sends a matching Origin.
      const script = `(async () => {
        const texts = [];
        for (const path of ["/api/v1/token", "/api/v1/csrf", "/api/v1/status", "/api/v1/secrets/"]) {
          texts.push(await (await fetch(path)).text());
        }
        const posted = await fetch("/ui/sync", { method: "POST" });
        return { statuses: posted.status, texts: texts.join("") };
      })()`;
      const { statuses, texts }: { statuses: number; texts: string } = await page.evaluate(script);
      assert.equal(statuses, 403);
      assert.ok(!texts.includes(TOKEN) && !texts.includes("authenticated"));
      assert.equal(server.view.cycles, 0);
    } finally {
      await browser.close();
    }
  });
});

describe("markup in the content of a page does nothing, in Chromium", { timeout: TIMEOUT_MS }, () => {
  let browser: Browser;
  let oauth: TestOauthServer;
  let server: TestServer;
  before(async () => {
    browser = await launchChromium();
    oauth = new TestOauthServer();
    await oauth.start();
    const text = JSON.stringify(EVIL);
    server = await startTestServer({
      editablePaths: ["tools"],
      configuration: `store: { driver: embedded }
web: { login_text: ${text} }
enrolments:
  ? ${JSON.stringify(`g/${EVIL.replaceAll("/", "\\")}`.replaceAll("\\", ""))}
  : { engine: prompt, description: ${text}, fields: [{ name: ${text}, help: ${text}, pattern: "[0-9]" }] }
  hub: { engine: github, host: "${oauth.url}", client_id: x, description: ${text} }
`,
      texts: {
        login: EVIL,
        secretView: `${EVIL}\n\n[x](javascript:document.title='owned') ![y](http://evil.test/x.png)`,
      },
    });
    const { store } = server.view.status();
    const target = { path: EVIL, format: EVIL, mode: EVIL, mounted: false };
    server.view.set({
      rules: [ruleView(EVIL, { description: EVIL, error: EVIL, key: EVIL, state: "failed", target })],
      status: {
        username: EVIL,
        store: { ...store, reachable: false, last_error: EVIL, address: `https://evil.test/${EVIL}` },
        config: { sources: [EVIL], problems: [EVIL], reload_needed: [EVIL] },
      },
    });
    await server.store.write(
      `tools/${EVIL.replaceAll("/", "")}`,
      parseFields(JSON.stringify({ [EVIL]: EVIL })),
    );
  });
  after(async () => {
    await server.stop();
    oauth.stop();
    await browser.close();
  });

  it("names, values, Markdown, rules, host names, enrolments and what they say [agent 26.19]", async () => {
    const { page, context, complaints } = await openWatchedPage(browser, server.url);
    const key = server.enrolments.list()[0]?.key ?? "";
    const prompt = `/ui/enrolments/prompt/${key.split("/").map(encodeURIComponent).join("/")}/`;
    const secret = `/ui/secrets/tools/${encodeURIComponent(EVIL.replaceAll("/", ""))}`;
    void server.enrolments.start("hub").catch(() => undefined);
    void server.enrolments.start(key).catch(() => undefined);
    const paths = [
      "/ui/",
      "/setup/",
      "/ui/enrolments/",
      "/ui/enrolments/github/hub/",
      prompt,
      "/ui/secrets/tools/",
      secret,
      `${secret}?reveal=true`,
      `${secret}?history=true`,
      `/ui/secrets/?q=${encodeURIComponent("<img")}`,
      "/ui/rules/",
      "/ui/config/",
    ];
    for (const path of paths) {
      const response = await page.goto(server.url + path);
      assert.equal(response?.status(), 200, path);
      // The live stream puts the same texts in place.
      server.view.set({});
      await page.evaluate("new Promise((resolve) => setTimeout(resolve, 120))");
      assert.notEqual(await page.title(), "owned", path);
      assert.equal(await page.locator("img[src=x], img[src^=http], a[href^=javascript]").count(), 0, path);
    }
    await page.goto(server.url + secret);
    await page.locator("button", { hasText: "Edit" }).click();
    await page.locator("tr.editing textarea").waitFor();
    assert.equal(await page.locator("tr.editing textarea").inputValue(), EVIL);
    assert.notEqual(await page.title(), "owned");
    assert.deepEqual(complaints, []);
    server.view.set({ status: { authenticated: false } });
    await page.goto(`${server.url}/`);
    assert.notEqual(await page.title(), "owned");
    assert.equal(await page.locator("img[src=x]").count(), 0);
    await context.close();
  });
});
