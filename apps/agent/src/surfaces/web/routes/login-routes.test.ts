import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { STRICT_CSP } from "@devplat/web-kit";
import { NOT_TRIED_YET } from "../../../auth/sign-in.ts";
import {
  FOREIGN_TOKEN,
  GOOD_PASSCODE,
  GOOD_PASSWORD,
  GOOD_TOKEN,
  OIDC_CODE,
  OIDC_STATE,
  type TestLoginOptions,
} from "../login.test-kit.ts";
import { startTestServer, type Answer, type TestServer } from "../server.test-kit.ts";

/** A server that nobody is signed in to. */
async function signedOut(
  login: TestLoginOptions = {},
  more: { requireUnlock?: boolean; texts?: { login: string; secretView: string } } = {},
): Promise<TestServer> {
  const server = await startTestServer({ login, ...more });
  server.view.set({ status: { authenticated: false } });
  return server;
}

function post(
  server: TestServer,
  path: string,
  form: Record<string, string> = {},
  headers: Record<string, string> = { Origin: server.url },
): Promise<Answer> {
  return server.send(path, { method: "POST", headers, body: new URLSearchParams(form).toString() });
}

const ldap = (server: TestServer, password = GOOD_PASSWORD): Promise<Answer> =>
  post(server, "/login/ldap", { username: "ada", password });
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const REFRESH = /<meta http-equiv="refresh"/;

/** No scripting: no script, no inline handler, the strict policy. */
function assertUnscripted({ body, headers }: Answer): void {
  assert.doesNotMatch(body, /<script|hx-|\son\w+=/);
  assert.equal(headers["content-security-policy"], STRICT_CSP);
}

describe("web login by store.auth_method", () => {
  it("oidc: a button opens /auth/oidc/start; the login returns to /auth/oidc/callback [agent 25.3]", async () => {
    await using server = await signedOut({ kind: "oidc" });
    const page = await server.send("/");
    assertUnscripted(page);
    assert.match(page.body, /<a class="button primary" href="\/auth\/oidc\/start">/);
    const start = await server.send("/auth/oidc/start", { headers: { "Sec-Fetch-Site": "same-origin" } });
    assert.equal(start.status, 303);
    const asked = new URL(start.headers.location ?? "");
    assert.equal(asked.searchParams.get("redirect_uri"), `${server.url}/auth/oidc/callback`);
    const [cookie = ""] = start.headers["set-cookie"] ?? [];
    assert.match(cookie, /; Path=\/auth; Max-Age=300; HttpOnly; SameSite=Lax$/);
    const back = await server.send(`/auth/oidc/callback?state=${OIDC_STATE}&code=${OIDC_CODE}`, {
      headers: { Cookie: cookie.split(";")[0] ?? "", "Sec-Fetch-Site": "cross-site" },
    });
    // No redirect: in a chain that began elsewhere the browser would not send a strict cookie.
    assert.equal(back.status, 200);
    assert.match(back.body, /<meta http-equiv="refresh" content="0; url=\/" \/>/);
    assertUnscripted(back);
    await turn();
    assert.equal(server.view.status().authenticated, true);
  });

  it("ldap: a user name and password form, then a page that refreshes until the push [agent 25.4]", async () => {
    const approval = Promise.withResolvers<void>();
    await using server = await signedOut({ kind: "ldap", second: "push", approve: approval.promise });
    const page = await server.send("/");
    assertUnscripted(page);
    assert.match(page.body, /name="username"[^>]*value="ada"|value="ada"[^>]*name="username"/);
    assert.match(page.body, /type="password"\s+name="password"/);
    const started = await ldap(server);
    assert.deepEqual([started.status, started.headers.location], [303, "/login/ldap"]);
    await turn();
    const progress = await server.send("/login/ldap");
    assertUnscripted(progress);
    assert.match(progress.body, REFRESH);
    assert.match(progress.body, /Approve it on your device \(duo\)/);
    assert.equal((await server.send("/")).headers.location, "/login/ldap", "the start page follows it");
    approval.resolve();
    await turn();
    assert.equal((await server.send("/login/ldap")).headers.location, "/");
    assert.equal((await server.send("/")).headers.location, "/ui/");
  });

  it("ldap: the passcode page does not refresh; after a wrong passcode it asks again [agent 25.5]", async () => {
    await using server = await signedOut({ kind: "ldap", second: "passcode" });
    await ldap(server);
    await turn();
    const prompt = await server.send("/login/ldap");
    assertUnscripted(prompt);
    assert.doesNotMatch(prompt.body, REFRESH);
    assert.match(prompt.body, /action="\/login\/ldap\/totp"/);
    await post(server, "/login/ldap/totp", { passcode: "000000" });
    await turn();
    assert.match((await server.send("/login/ldap")).body, /was not accepted/);
    await post(server, "/login/ldap/totp", { passcode: ` ${GOOD_PASSCODE} ` });
    await turn();
    assert.equal(server.view.status().authenticated, true);
  });

  it("ldap: a wrong password is said on the form, without the password", async () => {
    await using server = await signedOut({ kind: "ldap" });
    await ldap(server, "hunter2");
    await turn();
    const page = await server.send("/");
    assert.match(page.body, /role="alert">\s*Not signed in: the directory does not accept/);
    assert.ok(!page.body.includes("hunter2") && !server.log.join("").includes("hunter2"));
    assert.equal((await server.send("/login/ldap")).headers.location, "/", "nothing is under way");
  });

  it("ldap: Cancel ends the login under way", async () => {
    await using server = await signedOut({ kind: "ldap", second: "passcode" });
    await ldap(server);
    await turn();
    assert.equal((await post(server, "/login/cancel")).headers.location, "/");
    assert.equal((await server.send("/login/ldap")).headers.location, "/");
    await post(server, "/login/ldap/totp", { passcode: GOOD_PASSCODE });
    await turn();
    assert.equal(server.view.status().authenticated, false);
  });

  it("token: a pasted store token is validated and adopted [agent 25.6]", async () => {
    await using server = await signedOut();
    const page = await server.send("/");
    assertUnscripted(page);
    assert.match(page.body, /action="\/login\/token"/);
    assert.match(page.body, /type="password"\s+name="token"/);
    const done = await post(server, "/login/token", { token: ` ${GOOD_TOKEN}\n` });
    assert.deepEqual([done.status, done.headers.location], [303, "/"]);
    assert.equal(server.view.status().authenticated, true);
    assert.ok(!server.log.join("").includes(GOOD_TOKEN));
  });

  it("token: one that the store does not accept is refused on the form, and not echoed", async () => {
    await using server = await signedOut();
    for (const token of ["hvs.wrong", "", "hvs.wrong".repeat(1000)]) {
      const { status, body } = await post(server, "/login/token", { token });
      assert.equal(status, 403);
      assert.match(body, /Not signed in: the store does not accept this token/);
      assert.ok(!body.includes("hvs.wrong"));
    }
    assert.equal(server.view.status().authenticated, false);
  });

  for (const method of ["mtls", "mtls+tpm", "mtls+os"]) {
    it(`${method}: the page says that the daemon signs in by certificate, and refreshes [agent 31.4]`, async () => {
      await using server = await signedOut({ kind: "mtls" });
      server.view.set({ status: { auth: { ...server.view.status().auth, method } } });
      const page = await server.send("/");
      assertUnscripted(page);
      assert.match(page.body, /signs in with its client certificate/);
      assert.match(page.body, REFRESH);
      assert.match(page.body, /<details open>[^]*The daemon says: no token found\./);
      assert.doesNotMatch(page.body, /<input/);
    });
  }

  for (const [bootstrap, form] of [
    ["ldap", /action="\/login\/ldap"/],
    ["oidc", /href="\/auth\/oidc\/start"/],
  ] as const) {
    it(`mtls on a new host: the ${bootstrap} form of store.mtls.bootstrap_method, once [agent 4.9 31.5]`, async () => {
      await using server = await signedOut({ kind: "mtls", bootstrap, needsCertificate: true });
      const page = await server.send("/");
      assertUnscripted(page);
      assert.match(page.body, form);
      assert.match(page.body, /needs a client certificate/);
      assert.doesNotMatch(page.body, REFRESH, "what is typed must stay");
    });
  }

  it("mtls: after the form the page reports the issuance, and refreshes until a token [agent 31.6]", async () => {
    const approval = Promise.withResolvers<void>();
    await using server = await signedOut({
      kind: "mtls",
      bootstrap: "ldap",
      needsCertificate: true,
      second: "push",
      approve: approval.promise,
    });
    await ldap(server);
    // Before the store has answered anything.
    const inFlight = await server.send("/login/ldap");
    assert.match(inFlight.body, REFRESH);
    approval.resolve();
    await turn();
    assert.equal((await server.send("/login/ldap")).headers.location, "/");
    assert.equal(server.view.status().authenticated, true);
  });

  it("mtls with a certificate: no login of a person, by form or provider", async () => {
    await using server = await signedOut({ kind: "mtls", bootstrap: "ldap" });
    assert.equal((await ldap(server)).status, 403);
    assert.equal((await server.send("/auth/oidc/start")).status, 403);
  });

  it("store.borrow_only: no form, and every login is refused [agent 31.10]", async () => {
    await using server = await signedOut({ borrowOnly: true });
    const page = await server.send("/");
    assert.match(page.body, /borrows its token from a peer/);
    assert.doesNotMatch(page.body, /<input/);
    assert.equal((await post(server, "/login/token", { token: GOOD_TOKEN })).status, 403);
    assert.equal(server.view.status().authenticated, false);
  });

  it("shows web.login_text, with links of http and https only [agent 31.8]", async () => {
    const login = "Ask [us](https://help.example.test/) <script>x</script> [no](javascript:alert(1))";
    await using server = await signedOut({}, { texts: { login, secretView: "" } });
    const page = await server.send("/");
    assertUnscripted(page);
    assert.match(page.body, /href="https:\/\/help\.example\.test\/"/);
    assert.doesNotMatch(page.body, /href="javascript/);
  });
});

describe("GET / just after the start", () => {
  it("waits a moment for the daemon's look for a token, then shows the form [agent 20.4]", async () => {
    await using server = await signedOut({ reason: NOT_TRIED_YET });
    server.view.set({ status: { uptime_seconds: 1 } });
    const page = await server.send("/");
    assertUnscripted(page);
    assert.match(page.body, /<meta http-equiv="refresh" content="1; url=\/" \/>/);
    assert.doesNotMatch(page.body, /<input/);
    server.view.set({ status: { uptime_seconds: 11 } });
    assert.match((await server.send("/")).body, /action="\/login\/token"/);
  });

  it("says that the store does not respond, asks for no token, and refreshes by itself [agent 20.5]", async () => {
    await using server = await signedOut({ reason: "the store has not answered", storeUnreachable: true });
    const page = await server.send("/");
    assertUnscripted(page);
    assert.match(page.body, /role="alert">\s*The secrets store cannot answer now\./);
    assert.match(page.body, /The daemon says: the store has not answered\./);
    assert.match(page.body, REFRESH);
    assert.doesNotMatch(page.body, /<input/);
  });
});

describe("request protection at the login", () => {
  it("a form that is not UTF-8 is refused and nothing is tried [agent 35.24]", async () => {
    await using server = await signedOut();
    for (const bytes of ["token=hvs.%ff", "token=%ed%a0%80", Buffer.from("token=\xff", "latin1")]) {
      const headers = { Origin: server.url };
      const { status, body } = await server.send("/login/token", { method: "POST", headers, body: bytes });
      assert.equal(status, 400);
      assert.match(body, /its encoding is broken/);
    }
    // The character itself is one like any other.
    assert.equal((await post(server, "/login/token", { token: "\uFFFD" })).status, 403);
  });

  it("POST /login/token is refused with 403 under certificate auth [agent 31.7]", async () => {
    for (const needsCertificate of [true, false]) {
      await using server = await signedOut({ kind: "mtls", needsCertificate });
      const { status, body } = await post(server, "/login/token", { token: GOOD_TOKEN });
      assert.equal(status, 403);
      assert.match(body, /signs in with its client certificate/);
      assert.equal(server.view.status().authenticated, false);
    }
  });

  it("a foreign identity's token at the login form is refused with the way to switch", async () => {
    await using server = await signedOut();
    const { status, body } = await post(server, "/login/token", { token: FOREIGN_TOKEN });
    assert.equal(status, 403);
    assert.match(body, /another identity than the last one[^]*login --switch(?:'|&#39;)\.</);
    assert.equal(server.view.status().authenticated, false);
  });

  it("while a token is held, login POSTs answer 409", async () => {
    await using server = await startTestServer({ login: { kind: "ldap" } });
    for (const path of ["/login/token", "/login/ldap", "/login/ldap/totp", "/login/cancel"]) {
      assert.equal((await post(server, path, { token: GOOD_TOKEN })).status, 409, path);
    }
    assert.equal((await server.send("/auth/oidc/start")).headers.location, "/");
  });

  it("every login POST needs a present, same-origin Origin [agent 32.1]", async () => {
    await using server = await signedOut({ kind: "ldap", second: "passcode" });
    const port = new URL(server.url).port;
    const foreign: Record<string, string>[] = [
      {},
      { Origin: "null" },
      { Origin: "https://evil.example.test" },
      { Origin: `http://127.0.0.1:${Number(port) + 1}` },
      { Origin: `https://127.0.0.1:${port}` },
      { Origin: `http://localhost:${port}` },
    ];
    for (const headers of foreign) {
      for (const path of ["/login/token", "/login/ldap", "/login/ldap/totp", "/login/cancel"]) {
        const form = { username: "ada", password: GOOD_PASSWORD, token: GOOD_TOKEN };
        assert.equal((await post(server, path, form, headers)).status, 403, `${path} ${headers["Origin"]}`);
      }
    }
    assert.equal((await server.send("/login/ldap")).headers.location, "/", "no login was begun");
    assert.equal(server.view.status().authenticated, false);
  });

  it("with web.require_unlock there is no sign-in without a session", async () => {
    await using server = await signedOut({}, { requireUnlock: true });
    assert.match((await server.send("/")).body, /<h1>Locked<\/h1>/);
    assert.equal((await post(server, "/login/token", { token: GOOD_TOKEN })).status, 401);
    assert.equal((await server.send("/login/ldap")).headers.location, "/");
    assert.equal((await server.send("/auth/oidc/start")).headers.location, "/");
    assert.equal(server.view.status().authenticated, false);
  });

  describe("the callback of the identity provider", () => {
    const callback = (server: TestServer, query: string, cookie = ""): Promise<Answer> =>
      server.send(`/auth/oidc/callback?${query}`, { headers: cookie === "" ? {} : { Cookie: cookie } });
    async function begun(server: TestServer): Promise<string> {
      const { headers } = await server.send("/auth/oidc/start");
      return (headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? "";
    }
    const right = `state=${OIDC_STATE}&code=${OIDC_CODE}`;

    it("does not sign in without the browser's cookie, the right state and a begun login [agent 25.3]", async () => {
      await using server = await signedOut({ kind: "oidc" });
      assert.equal((await callback(server, right)).status, 403, "none begun");
      const cookie = await begun(server);
      assert.equal((await callback(server, right)).status, 403, "no cookie");
      assert.equal((await callback(server, right, `${cookie}x`)).status, 403, "another cookie");
      assert.equal((await callback(server, `state=other&code=${OIDC_CODE}`, cookie)).status, 403, "state");
      await turn();
      assert.equal(server.view.status().authenticated, false);
      assert.equal((await callback(server, right, cookie)).status, 200);
      assert.equal((await callback(server, right, cookie)).status, 403, "used already");
    });

    it("tells who was declined at the provider, and passes none of its free text on", async () => {
      await using server = await signedOut({ kind: "oidc" });
      const cookie = await begun(server);
      const query = `state=${OIDC_STATE}&error=access_denied&error_description=<b>planted</b>`;
      await callback(server, query, cookie);
      await turn();
      const { body } = await server.send("/");
      assert.match(body, /the identity provider did not let you in \(access_denied\)/);
      assert.doesNotMatch(body, /planted/);
    });

    it("is begun by no foreign page", async () => {
      await using server = await signedOut({ kind: "oidc" });
      for (const site of ["cross-site", "same-site"]) {
        const { status } = await server.send("/auth/oidc/start", { headers: { "Sec-Fetch-Site": site } });
        assert.equal(status, 403);
      }
    });

    it("needs no session with web.require_unlock: the provider's redirect has no cookie", async () => {
      await using server = await startTestServer({ login: { kind: "oidc" }, requireUnlock: true });
      const { requestOpenLink } = await import("../../socket/open-link.ts");
      const link = new URL(await requestOpenLink(server.runtimeFolder));
      const opened = await server.send(link.pathname + link.search);
      const session = (opened.headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? "";
      server.view.set({ status: { authenticated: false } });
      const start = await server.send("/auth/oidc/start", { headers: { Cookie: session } });
      const ticket = (start.headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? "";
      assert.equal((await callback(server, right, ticket)).status, 200);
      await turn();
      assert.equal(server.view.status().authenticated, true);
      assert.match((await server.send("/", { headers: { Cookie: ticket } })).body, /<h1>Locked<\/h1>/);
    });

    it("may ask for a passcode too", async () => {
      await using server = await signedOut({ kind: "oidc", second: "passcode" });
      await callback(server, right, await begun(server));
      await turn();
      assert.equal((await server.send("/")).headers.location, "/login/ldap");
      await post(server, "/login/ldap/totp", { passcode: GOOD_PASSCODE });
      await turn();
      assert.equal(server.view.status().authenticated, true);
    });
  });
});

describe("Sign out", () => {
  it("takes the token away, ends sessions and streams, and leads to the login view [agent 25.9]", async () => {
    await using server = await startTestServer();
    const stream = await server.open("/ui/sse");
    const ended = new Promise<void>((resolve) => stream.on("end", resolve).resume());
    assert.match((await server.send("/ui/")).body, /action="\/ui\/sign-out"/);
    const done = await post(server, "/ui/sign-out");
    assert.deepEqual([done.status, done.headers.location, server.signedOut], [303, "/", 1]);
    await ended;
    assert.match((await server.send("/")).body, /<h1>Sign in<\/h1>/);
    assert.equal((await server.send("/ui/secrets/")).headers.location, "/");
  });

  it("is refused if the token would return: environment, peer, certificate, embedded", async () => {
    await using server = await startTestServer();
    const { auth } = server.view.status();
    for (const other of [
      { ...auth, source: "environment" as const },
      { ...auth, source: "peer" as const },
      { ...auth, source: "embedded" as const },
      { ...auth, source: "login" as const, method: "mtls" },
      { ...auth, source: "file" as const, method: "mtls+tpm" },
    ]) {
      server.view.set({ status: { auth: other } });
      assert.doesNotMatch((await server.send("/ui/")).body, /sign-out/);
      assert.equal((await post(server, "/ui/sign-out")).status, 403);
    }
    assert.equal(server.signedOut, 0);
  });

  it("is posted by no other page", async () => {
    await using server = await startTestServer();
    assert.equal((await post(server, "/ui/sign-out", {}, {})).status, 403);
    assert.equal((await post(server, "/ui/sign-out", {}, { Origin: "null" })).status, 403);
    assert.equal(server.signedOut, 0);
  });

  it("with web.require_unlock, the browser is locked out afterwards", async () => {
    await using server = await startTestServer({ requireUnlock: true });
    const { requestOpenLink } = await import("../../socket/open-link.ts");
    const link = new URL(await requestOpenLink(server.runtimeFolder));
    const opened = await server.send(link.pathname + link.search);
    const Cookie = (opened.headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? "";
    assert.equal((await server.send("/ui/", { headers: { Cookie } })).status, 200);
    assert.equal((await post(server, "/ui/sign-out", {}, { Cookie, Origin: server.url })).status, 303);
    assert.match((await server.send("/", { headers: { Cookie } })).body, /<h1>Locked<\/h1>/);
  });
});
