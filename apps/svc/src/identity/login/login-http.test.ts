import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { startCodeHost, type CodeHost } from "@devplat/testkit";
import { createToken } from "../../credentials/token-format.ts";
import { startAdministration, type TestAdministration } from "../../assemble/administration.test-kit.ts";

/** A browser, as far as logins go: cookies by name, redirects by hand. */
class Browser {
  readonly cookies = new Map<string, string>();
  readonly #origin: string;

  constructor(origin: string) {
    this.#origin = origin;
  }

  async open(url: string, form?: Record<string, string>, origin = this.#origin): Promise<Response> {
    const own = url.startsWith("/");
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(own ? this.#origin + url : url, {
      method: form === undefined ? "GET" : "POST",
      redirect: "manual",
      headers: {
        ...(own && cookie !== "" ? { cookie } : {}),
        ...(form === undefined || origin === "" ? {} : { origin }),
      },
      ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
    });
    for (const line of own ? response.headers.getSetCookie() : []) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (line.includes("Max-Age=0")) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return response;
  }

  /** To the code host and back, without the last step: gives the callback's path. */
  async toCallback(returnTo = "/ui"): Promise<string> {
    const begun = await this.open(`/auth/login?return_to=${encodeURIComponent(returnTo)}`);
    const consent = await this.open(begun.headers.get("location") ?? "");
    const url = new URL(consent.headers.get("location") ?? "");
    return url.pathname + url.search;
  }

  async signIn(returnTo?: string): Promise<Response> {
    return this.open(await this.toCallback(returnTo));
  }
}

describe("login over HTTP, in production mode", () => {
  let host: CodeHost;
  let svc: TestAdministration;
  /** The address that it calls its own. */
  let base: string;

  before(async () => {
    host = await startCodeHost();
  });
  after(async () => host.stop());
  beforeEach(async () => {
    host.oauth.settings.consent = { login: "alice" };
    svc = await startAdministration({
      developmentMode: false,
      admins: ["Root"],
      host: {
        url: host.url,
        api_url: host.apiUrl,
        client_id: host.oauth.clientId,
        client_secret: host.oauth.clientSecret,
      },
    });
    base = svc.url.replace("127.0.0.1", "localhost");
  });
  afterEach(async () => {
    host.clearFaults();
    await svc.stop();
  });

  const api = async (browser: Browser, path: string, method = "GET", origin = svc.url): Promise<Response> =>
    fetch(svc.url + path, {
      method,
      headers: {
        cookie: `svc_session=${browser.cookies.get("svc_session") ?? ""}`,
        ...(origin === "" ? {} : { origin }),
      },
    });
  const json = async (response: Response): Promise<Record<string, unknown>> =>
    (await response.json()) as Record<string, unknown>;

  it("GET /auth/login and /auth/callback: a session in a cookie, and back to the page [svc 6.17]", async () => {
    const browser = new Browser(base);
    const asked = await browser.open("/admin/tokens?x=1");
    assert.match(await asked.text(), /\/auth\/login\?return_to=%2Fadmin%2Ftokens%3Fx%3D1/);
    const done = await browser.signIn("/admin/tokens?x=1");
    assert.deepEqual([done.status, done.headers.get("location")], [303, "/admin/tokens?x=1"]);
    assert.deepEqual([...browser.cookies.keys()], ["svc_session"]);
    const me = await json(await api(browser, "/api/session"));
    assert.deepEqual([me["username"], me["role"], me["account"]], ["alice", "user", "connected"]);
    assert.deepEqual(
      (await svc.audited()).map(({ action }) => action),
      ["login.succeeded"],
    );
  });

  it("cookies are HttpOnly and SameSite=Lax; the login's are for /auth and 10 minutes", async () => {
    const browser = new Browser(base);
    const begun = await browser.open("/auth/login");
    assert.match(
      begun.headers.get("set-cookie") ?? "",
      /^svc_login_[\w-]+=[\w-]{43}; Path=\/auth; Max-Age=600; HttpOnly; SameSite=Lax$/,
    );
    const done = await browser.signIn();
    assert.match(
      done.headers.getSetCookie()[0] ?? "",
      /^svc_session=svcr_\w+; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Lax$/,
    );
  });

  it("behind https a cookie that pages of sibling names may have set is refused", async () => {
    const secure = await startAdministration({ baseUrl: "https://svc.example" });
    const token = await secure.session("mallory", "user");
    const status = async (name: string): Promise<number> =>
      (await fetch(`${secure.url}/api/session`, { headers: { cookie: `${name}=${token}` } })).status;
    assert.deepEqual([await status("svc_session"), await status("__Host-svc_session")], [401, 200]);
    await secure.stop();
  });

  it("cookies are Secure behind https", async () => {
    const secure = await startAdministration({
      developmentMode: false,
      baseUrl: "https://svc.example",
      host: { url: host.url, client_id: host.oauth.clientId, client_secret: "x" },
    });
    const begun = await fetch(`${secure.url}/auth/login`, { redirect: "manual" });
    assert.match(
      begun.headers.get("set-cookie") ?? "",
      /^__Host-svc_login_[\w-]+=[\w-]{43}; Path=\/; .*; Secure$/,
    );
    const location = new URL(begun.headers.get("location") ?? "");
    assert.equal(location.searchParams.get("redirect_uri"), "https://svc.example/auth/callback");
    await secure.stop();
  });

  it("admins are admins by their login", async () => {
    host.oauth.settings.consent = { login: "root" };
    const browser = new Browser(base);
    await browser.signIn();
    assert.equal((await json(await api(browser, "/api/session")))["role"], "admin");
    assert.equal((await browser.open("/admin/users")).status, 200);
  });

  it("a login ends the session that the browser had, so that its token is not reused", async () => {
    const browser = new Browser(base);
    await browser.signIn();
    const first = browser.cookies.get("svc_session");
    await browser.signIn();
    assert.notEqual(browser.cookies.get("svc_session"), first);
    const response = await fetch(`${svc.url}/api/session`, { headers: { cookie: `svc_session=${first}` } });
    assert.equal(response.status, 401);
  });

  it("a login under another name of the machine is redirected to the base address", async () => {
    const response = await fetch(`${svc.url}/auth/login?return_to=%2Fadmin`, { redirect: "manual" });
    assert.equal(response.headers.get("location"), `${base}/auth/login?return_to=%2Fadmin`);
    assert.equal(response.headers.get("set-cookie"), null);
  });

  it("return_to leads to no other site", async () => {
    for (const target of ["https://evil.example", "//evil.example", "/\\evil.example", "/auth/logout"]) {
      const done = await new Browser(base).signIn(target);
      assert.equal(done.headers.get("location"), "/ui", target);
    }
  });

  it("a replayed callback, and one of another browser, get a clear page and no session", async () => {
    const [mine, theirs] = [new Browser(base), new Browser(base)];
    const callback = await mine.toCallback();
    const stolen = await theirs.open(callback);
    assert.equal(stolen.status, 400);
    assert.match(await stolen.text(), /was not begun in this browser/);
    assert.equal(theirs.cookies.has("svc_session"), false);
    const own = await mine.toCallback();
    assert.equal((await mine.open(own)).status, 303);
    const replayed = await mine.open(own);
    assert.equal(replayed.status, 400);
    assert.match(await replayed.text(), /Sign in again/);
  });

  it("two logins in one browser do not disturb each other", async () => {
    const browser = new Browser(base);
    const [one, two] = [await browser.toCallback("/admin"), await browser.toCallback("/ui")];
    assert.equal((await browser.open(two)).headers.get("location"), "/ui");
    assert.equal((await browser.open(one)).headers.get("location"), "/admin");
  });

  it("what a callback holds is not shown again, and not logged", async () => {
    const response = await new Browser(base).open(
      "/auth/callback?code=planted-code&state=planted-state&error=%3Cscript%3Eplanted&error_description=planted",
    );
    assert.equal(response.status, 400);
    assert.doesNotMatch(await response.text(), /planted/);
    assert.doesNotMatch(svc.log(), /planted/);
  });

  it("a code host that is down during login: a clear page with what to do", async () => {
    const browser = new Browser(base);
    const callback = await browser.toCallback();
    host.inject({ path: /access_token$/ }, { status: 503, body: "planted" });
    const response = await browser.open(callback);
    assert.equal(response.status, 502);
    const page = await response.text();
    assert.match(page, /could not be asked[^]*Sign in with/);
    assert.doesNotMatch(page, /planted/);
  });

  it("no secret of a login is in the log, the audit or the responses", async () => {
    const browser = new Browser(base);
    await browser.signIn();
    host.inject({ path: /access_token$/, times: 1 }, { status: 500, body: "planted" });
    await browser.signIn();
    const page = await (await browser.open("/ui")).text();
    const session = browser.cookies.get("svc_session") ?? "-";
    const texts = svc.log() + page + JSON.stringify(await svc.audited());
    assert.doesNotMatch(texts, /planted/);
    assert.equal(texts.includes(session), false);
  });

  it("GET and DELETE /api/sessions: own ones, and everybody's for admins [svc 6.17]", async () => {
    const [alice, again, root] = [new Browser(base), new Browser(base), new Browser(base)];
    await alice.signIn();
    await again.signIn();
    host.oauth.settings.consent = { login: "root" };
    await root.signIn();
    const listed = (await (await api(alice, "/api/sessions")).json()) as {
      id: string;
      username: string;
      current: boolean;
    }[];
    assert.deepEqual([listed.length, listed.filter((each) => each.username === "alice").length], [2, 2]);
    assert.equal((await api(alice, "/api/sessions?all=true")).status, 403);
    const all = (await (await api(root, "/api/sessions?all=true")).json()) as Record<string, unknown>[];
    assert.equal(all.length, 3);
    const other = listed.find((each) => !each.current)?.id ?? "";
    const roots = String(all.find((each) => each["username"] === "root")?.["id"]);
    assert.equal((await api(alice, `/api/sessions/${roots}`, "DELETE")).status, 404);
    assert.equal((await api(alice, `/api/sessions/${other}`, "DELETE", "")).status, 403);
    assert.equal((await api(alice, `/api/sessions/${other}`, "DELETE", "http://evil.example")).status, 403);
    assert.equal((await api(alice, `/api/sessions/${other}`, "DELETE")).status, 204);
    assert.equal((await api(again, "/api/session")).status, 401);
    assert.equal((await api(alice, `/api/sessions/${other}`, "DELETE")).status, 404);
  });

  it("DELETE /api/account forgets the credential, here and at the code host", async () => {
    const browser = new Browser(base);
    await browser.signIn();
    const issued = host.oauth.issued.at(-1) ?? "";
    assert.equal((await api(browser, "/api/account", "DELETE")).status, 204);
    assert.equal(host.oauth.isLive(issued), false);
    assert.equal((await json(await api(browser, "/api/session")))["account"], "none");
    assert.equal((await api(browser, "/api/account", "DELETE")).status, 404);
    assert.equal((await svc.audited())[0]?.action, "account.disconnected");
  });

  it("forms with a session cookie are refused with a foreign, null or missing Origin", async () => {
    host.oauth.settings.consent = { login: "root" };
    const browser = new Browser(base);
    await browser.signIn();
    const { id } = (await svc.store.sessions.list())[0] ?? { id: "" };
    for (const path of [
      "/ui/account/disconnect",
      `/ui/sessions/${id}/end`,
      `/admin/users/sessions/${id}/end`,
      "/admin/apps",
      "/admin/apps/manifest",
      "/admin/apps/x/check",
      "/admin/apps/x/default",
      "/admin/apps/x/remove",
      "/admin/tokens",
      "/admin/tokens/x/revoke",
      "/admin/logout",
      "/auth/device",
    ]) {
      for (const origin of ["https://evil.example", "null", "", base.replace("http:", "https:")]) {
        assert.equal((await browser.open(path, { a: "b" }, origin)).status, 403, `${path} from "${origin}"`);
      }
    }
    const me = await json(await api(browser, "/api/session"));
    assert.deepEqual([me["username"], me["account"]], ["root", "connected"]);
  });

  it("session endpoints refuse unknown parameters, methods, ids and kinds of tokens", async () => {
    const browser = new Browser(base);
    await browser.signIn();
    assert.equal((await api(browser, "/api/sessions?all=maybe")).status, 400);
    assert.equal((await api(browser, "/api/sessions?color=red")).status, 400);
    for (const path of ["/api/session", "/api/sessions", "/api/account", "/api/sessions/x"]) {
      assert.equal((await api(browser, path, "PUT")).status, 405, path);
    }
    for (const id of ["none", "..%2f..", "%00", "' OR 1=1 --", "x".repeat(5000)]) {
      assert.equal((await api(browser, `/api/sessions/${encodeURIComponent(id)}`, "DELETE")).status, 404, id);
    }
    for (const token of [createToken("proxy").reveal(), createToken("agent").reveal()]) {
      const response = await fetch(`${svc.url}/api/sessions`, {
        headers: { authorization: `Bearer ${token}` },
      });
      assert.equal(response.status, 403);
    }
    const unknown = createToken("session").reveal();
    const response = await fetch(`${svc.url}/api/sessions`, {
      headers: { authorization: `Bearer ${unknown}` },
    });
    assert.equal(response.status, 401);
  });

  it("logins are bounded per address", async () => {
    let status = 0;
    for (let round = 0; round <= 60; round++) status = (await new Browser(base).open("/auth/login")).status;
    assert.equal(status, 429);
    const response = await new Browser(base).open("/auth/callback?code=x&state=y");
    assert.equal(response.status, 429);
    assert.match(await response.text(), /Too many tries\. Try again in \d+ s/);
  });

  it("there is no test login, by API or form, and no login without an OAuth client", async () => {
    const bare = await startAdministration({ developmentMode: false });
    for (const [path, method] of [
      ["/auth/test-login", "POST"],
      ["/admin/login", "POST"],
      ["/auth/login", "GET"],
      ["/auth/callback?code=x&state=y", "GET"],
    ] as const) {
      const response = await fetch(bare.url + path, { method, redirect: "manual" });
      assert.equal(response.status, 404, path);
    }
    assert.match(await (await fetch(`${bare.url}/ui`)).text(), /No way to sign in is set up/);
    await bare.stop();
  });

  describe("device flow", () => {
    const post = async (path: string, form: Record<string, string> | string): Promise<Response> =>
      fetch(svc.url + path, {
        method: "POST",
        headers: { "content-type": "application/x-www-form-urlencoded" },
        body: typeof form === "string" ? form : new URLSearchParams(form),
      });
    const GRANT = "urn:ietf:params:oauth:grant-type:device_code";
    const poll = async (code: string): Promise<Record<string, unknown>> =>
      json(await post("/auth/device/token", { grant_type: GRANT, device_code: code, client_id: "svc-cli" }));

    it("POST /auth/device/code, approval at /auth/device, POST /auth/device/token [svc 6.17]", async () => {
      const code = await json(await post("/auth/device/code", { client_id: "svc-cli", scope: "any" }));
      assert.deepEqual(
        [code["verification_uri"], code["expires_in"], code["interval"]],
        [`${base}/auth/device`, 900, 5],
      );
      assert.equal((await poll(String(code["device_code"])))["error"], "slow_down");
      const browser = new Browser(base);
      const path = String(code["verification_uri_complete"]).slice(base.length);
      assert.match(await (await browser.open(path)).text(), /return_to=%2Fauth%2Fdevice%3Fuser_code%3D/);
      const done = await browser.signIn(path);
      assert.equal(done.headers.get("location"), path);
      assert.match(await (await browser.open(path)).text(), /Connect svc-cli\?/);
      const decision = { user_code: String(code["user_code"]), decision: "approve" };
      assert.equal((await browser.open("/auth/device", decision, "http://evil.example")).status, 403);
      assert.equal((await browser.open("/auth/device", decision, "")).status, 403);
      assert.match(await (await browser.open("/auth/device", decision)).text(), /svc-cli is signed in/);
      const token = await poll(String(code["device_code"]));
      assert.deepEqual(
        [token["token_type"], token["expires_in"], token["username"]],
        ["Bearer", 2_592_000, "alice"],
      );
      const me = await fetch(`${svc.url}/api/session`, {
        headers: { authorization: `Bearer ${String(token["access_token"])}` },
      });
      assert.equal((await json(me))["username"], "alice");
      const bearer = { authorization: `Bearer ${String(token["access_token"])}` };
      const listed = (await (await fetch(`${svc.url}/api/sessions`, { headers: bearer })).json()) as Record<
        string,
        unknown
      >[];
      assert.deepEqual(new Set(listed.map(({ device }) => device)), new Set(["svc-cli", null]));
      // A program has no access to the user's other sessions, account, pages and programs.
      const browsers = listed.find(({ device }) => device === null);
      for (const own of [`/api/sessions/${String(browsers?.["id"])}`, "/api/account"]) {
        const refused = await fetch(svc.url + own, { method: "DELETE", headers: bearer });
        assert.equal(refused.status, 403, own);
        assert.match(await refused.text(), /sign in in a browser/);
      }
      const cookie = { cookie: `svc_session=${String(token["access_token"])}` };
      for (const headers of [bearer, cookie]) {
        const page = await fetch(`${svc.url}/auth/device?user_code=BCDF-GHJK`, { headers });
        assert.match(await page.text(), /Sign in/);
      }
      assert.equal((await fetch(`${svc.url}/api/session`, { headers: cookie })).status, 401);
      const minted = await fetch(`${svc.url}/api/admin-tokens`, {
        method: "POST",
        headers: { ...bearer, "content-type": "application/json" },
        body: "{}",
      });
      assert.match(await minted.text(), /auth login --admin/);
      assert.equal((await fetch(`${svc.url}/auth/logout`, { method: "POST", headers: bearer })).status, 204);
      assert.equal((await poll(String(code["device_code"])))["error"], "expired_token");
    });

    it("a refusal and every unknown answer refuse the device", async () => {
      const browser = new Browser(base);
      await browser.signIn();
      for (const decision of ["deny", "", "APPROVE"]) {
        const code = await json(await post("/auth/device/code", { client_id: "svc-cli" }));
        await browser.open("/auth/device", { user_code: String(code["user_code"]), decision });
        assert.equal((await poll(String(code["device_code"])))["error"], "access_denied");
      }
    });

    it("guessing user codes is bounded", async () => {
      const browser = new Browser(base);
      await browser.signIn();
      const statuses: number[] = [];
      for (let round = 0; round < 12; round++) {
        statuses.push((await browser.open("/auth/device?user_code=BCDF-GHJK")).status);
      }
      assert.deepEqual([...new Set(statuses)], [404, 429]);
    });

    const wrong: [name: string, path: string, form: Record<string, string> | string, error: string][] = [
      ["no client", "/auth/device/code", {}, "invalid_client"],
      ["a client with markup", "/auth/device/code", { client_id: "<b>" }, "invalid_client"],
      ["a long client", "/auth/device/code", { client_id: "x".repeat(65) }, "invalid_client"],
      ["another grant", "/auth/device/token", { grant_type: "password" }, "unsupported_grant_type"],
      [
        "an unknown code",
        "/auth/device/token",
        { grant_type: GRANT, device_code: "x", client_id: "y" },
        "expired_token",
      ],
      ["a body that is no UTF-8", "/auth/device/token", "\u00ff".repeat(70_000), "invalid_request"],
    ];
    for (const [name, path, form, error] of wrong) {
      it(`bad input: ${name}`, async () => {
        const response = await post(path, form);
        assert.ok([400, 413].includes(response.status));
        assert.equal((await json(response))["error"], error);
      });
    }

    it("another method or content type", async () => {
      for (const path of ["/auth/device/code", "/auth/device/token"]) {
        assert.equal((await fetch(svc.url + path)).status, 405);
        const response = await fetch(svc.url + path, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: "{}",
        });
        assert.equal(response.status, 415);
      }
      const metadata = await fetch(`${svc.url}/.well-known/oauth-authorization-server`, { method: "POST" });
      assert.equal(metadata.status, 405);
    });

    it("GET /.well-known/oauth-authorization-server tells where it is (RFC 8414)", async () => {
      const metadata = await json(await fetch(`${svc.url}/.well-known/oauth-authorization-server`));
      assert.equal(metadata["issuer"], base);
      assert.equal(metadata["device_authorization_endpoint"], `${base}/auth/device/code`);
      assert.equal(metadata["token_endpoint"], `${base}/auth/device/token`);
      assert.deepEqual(metadata["grant_types_supported"], [GRANT]);
    });
  });
});
