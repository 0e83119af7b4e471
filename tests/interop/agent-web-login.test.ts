import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, describe, it } from "node:test";
import {
  freePort,
  startOidcProvider,
  startSlapd,
  startVault,
  until,
  type OidcProvider,
  type Slapd,
  type Vault,
} from "@devplat/testkit";
import { AgentHome, GENERATE_ROOT, USER_POLICY, type RunningDaemon } from "./agent-auth-stand.ts";
import { PlainBrowser } from "./agent-web/plain-browser.ts";

/** Must be seen nowhere. */
const PASSWORD = "ada-hunter2-password";
const RULE = "rules: [{name: r, key: k, target: {path: ~/out.yaml, format: yaml}}]\n";
/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;

let vault: Vault;
let slapd: Slapd;
let provider: OidcProvider;
let oidcPort = 0;

/** A daemon with a web UI, in a home of its own. */
class Site implements AsyncDisposable {
  readonly home: AgentHome;
  readonly daemon: RunningDaemon;
  readonly url: string;
  readonly browser: PlainBrowser;

  private constructor(home: AgentHome, daemon: RunningDaemon, url: string) {
    this.home = home;
    this.daemon = daemon;
    this.url = url;
    this.browser = new PlainBrowser(url);
  }

  static async start(store: Record<string, unknown>, port = 0): Promise<Site> {
    const section = { address: vault.address, ca_cert: vault.caFile, username: "ada", ...store };
    const home = await AgentHome.create(
      section,
      `web: {enabled: true, listen: "127.0.0.1:${port}"}\n${RULE}`,
    );
    const daemon = home.daemon();
    await daemon.logged(/^Web UI: http\S+\/$/m);
    return new Site(home, daemon, /^Web UI: (http\S+)\/$/m.exec(daemon.log())?.[1] ?? "");
  }

  /** Follows the pages until the daemon is signed in. */
  async signedIn(): Promise<void> {
    await until(
      async () => (await this.browser.get("/")).location === "/ui/",
      () => this.daemon.log(),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.daemon.stop();
    await this.home.remove();
  }
}

const synced = (site: Site): Promise<boolean> =>
  until(
    async () => (await site.home.read("out.yaml")) === "value: one\n",
    () => site.daemon.log(),
  );

before(async () => {
  oidcPort = await freePort();
  const callback = `http://127.0.0.1:${oidcPort}/auth/oidc/callback`;
  [vault, slapd, provider] = await Promise.all([
    startVault({ tls: true, ldapPlugin: true }),
    startSlapd({ ada: PASSWORD, bob: "bob-password", mia: "mia-password" }),
    startOidcProvider([callback]),
  ]);
  const policy = `${USER_POLICY}
path "pki/sign/*" { capabilities = ["update"] }`;
  await vault.request("PUT", "sys/policies/acl/user", { policy });
  await vault.request("POST", "sys/auth/ldap", { type: "vault-ldap", config: { default_lease_ttl: "1h" } });
  await vault.request("POST", "auth/ldap/config", {
    url: slapd.url,
    userdn: slapd.usersDn,
    userattr: "uid",
    token_policies: ["user"],
  });
  await vault.request("POST", "sys/auth/oidc", { type: "oidc" });
  await vault.request("POST", "auth/oidc/config", {
    oidc_discovery_url: provider.issuer,
    oidc_client_id: provider.clientId,
    oidc_client_secret: provider.clientSecret,
    default_role: "people",
  });
  await vault.request("POST", "auth/oidc/role/people", {
    user_claim: "sub",
    allowed_redirect_uris: [callback],
    token_policies: ["user"],
  });
  await vault.request("POST", "sys/mounts/pki", { type: "pki", config: { max_lease_ttl: "8760h" } });
  const { body } = await vault.request("POST", `pki/${GENERATE_ROOT}`, { common_name: "root", ttl: "8760h" });
  const names = { allow_any_name: true, enforce_hostnames: false, key_type: "any" };
  await vault.request("POST", "pki/roles/people", { ...names, max_ttl: "72h" });
  await vault.request("POST", "sys/auth/cert", { type: "cert", config: { default_lease_ttl: "1h" } });
  await vault.request("POST", "auth/cert/certs/people", {
    certificate: (body["data"] as { certificate: string }).certificate,
    token_policies: ["user"],
  });
  await vault.put("users/ada/k", { value: "one" });
});
after(() => Promise.all([vault.stop(), slapd.stop(), provider.stop()]));

describe("signing in by the browser, with a real store", { timeout: TIMEOUT_MS }, () => {
  it("token: adopts a pasted one, syncs, and Sign out removes it but does not revoke [agent 31.3]", async () => {
    await using site = await Site.start({ auth_method: "token" });
    const { browser, home } = site;
    const refused = await browser.post("/login/token", { token: "hvs.wrong-token" });
    assert.equal(refused.status, 403);
    assert.match(refused.body, /the store does not accept this token/);
    const token = await vault.createUserToken("ada", ["user"]);
    assert.equal((await browser.post("/login/token", { token })).location, "/");
    assert.equal((await browser.get("/")).location, "/ui/");
    await synced(site);
    assert.equal(await home.token(), token);
    assert.equal(await home.modeOf(".daemon-token"), 0o600);
    assert.equal((await browser.post("/login/token", { token })).status, 409, "a token is held");
    assert.equal((await browser.post("/ui/sign-out")).location, "/");
    assert.match((await browser.get("/")).body, /action="\/login\/token"/);
    assert.equal(await home.token(), undefined);
    assert.equal(await isGone(token), false, "not ours to revoke");
    assert.ok(!site.daemon.log().includes(token));
  });

  it("ldap: Sign out revokes the token in the store, because this login made it [agent 31.2]", async () => {
    await using site = await Site.start({ auth_method: "ldap" });
    const { browser, home } = site;
    const wrong = await browser.post("/login/ldap", { username: "ada", password: "wrong-hunter2" });
    assert.equal(wrong.location, "/login/ldap");
    await until(async () =>
      /does not accept this user name and password/.test((await browser.get("/")).body),
    );
    await browser.post("/login/ldap", { username: "ada", password: PASSWORD });
    await site.signedIn();
    await synced(site);
    const token = (await home.token()) ?? "";
    // Another identity's token is refused at the form from now on.
    await browser.post("/ui/sign-out");
    await until(() => isGone(token));
    await browser.post("/login/ldap", { username: "bob", password: "bob-password" });
    await until(async () => /another identity than the last one/.test((await browser.get("/")).body));
    const foreign = await browser.post("/login/token", { token: vault.rootToken });
    assert.equal(foreign.status, 403);
    assert.match(foreign.body, /another identity than the last one/);
    assert.equal(await home.token(), undefined);
    assert.doesNotMatch(site.daemon.log(), /hunter2|hvs\./);
  });

  it("ldap with a second factor: a wrong passcode, then the right one (TOTP) [agent 31.2]", async () => {
    await using site = await Site.start({ auth_method: "ldap", username: "mia" });
    const { browser, home } = site;
    const credentials = { username: "mia", password: "mia-password" };
    await browser.post("/login/ldap", credentials);
    await site.signedIn();
    const pin = JSON.parse(await home.read(".local/state/daemon/identity.json")) as { entity_id: string };
    const secret = await enforceTotp(pin.entity_id);
    await browser.post("/ui/sign-out");
    await browser.post("/login/ldap", credentials);
    const asks = async (text: RegExp): Promise<boolean> => text.test((await browser.get("/login/ldap")).body);
    await until(() => asks(/One-time passcode \(totp\)/));
    const wrong = String((Number(totp(secret)) + 1) % 1_000_000).padStart(6, "0");
    await browser.post("/login/ldap/totp", { passcode: wrong });
    await until(() => asks(/The passcode was not accepted/));
    await browser.post("/login/ldap/totp", { passcode: totp(secret) });
    await site.signedIn();
  });

  it("oidc: over a real identity provider, and back to the page [agent 31.1]", async () => {
    await using site = await Site.start({ auth_method: "oidc" }, oidcPort);
    const { browser } = site;
    const start = await browser.get("/auth/oidc/start");
    assert.equal(start.status, 303);
    let back: URL | undefined;
    // The provider's cookies are its own; the last step is the daemon's, with the daemon's cookie.
    await provider.visit(start.location ?? "", "ada", {
      callback: (url) => {
        back = url;
        return new URL("/healthz", site.url);
      },
    });
    const path = `${back?.pathname}${back?.search}`;
    const stranger = new PlainBrowser(site.url);
    assert.equal((await stranger.get(path)).status, 403, "a browser that did not begin it");
    const page = await browser.get(path);
    assert.equal(page.status, 200);
    assert.match(page.body, /<meta http-equiv="refresh" content="0; url=\/" \/>/);
    await site.signedIn();
    await synced(site);
  });

  it("mtls: a one-time bootstrap by ldap gets the certificate for later sign-ins [agent 31.5]", async () => {
    await using site = await Site.start({
      auth_method: "mtls",
      mtls: { bootstrap_method: "ldap", pki_role: "people", ttl: "24h", reissue_before: "1h" },
    });
    const { browser } = site;
    const bootstrap = async (): Promise<unknown> =>
      (JSON.parse((await browser.get("/api/v1/status")).body) as { bootstrap: unknown }).bootstrap;
    await until(async () => /This host needs a client certificate/.test((await browser.get("/")).body));
    assert.deepEqual(await bootstrap(), { active: true, method: "ldap" });
    assert.equal((await browser.post("/login/token", { token: vault.rootToken })).status, 403);
    await browser.post("/login/ldap", { username: "ada", password: PASSWORD });
    await site.signedIn();
    assert.deepEqual(await bootstrap(), { active: false, method: null });
    await synced(site);
    assert.doesNotMatch((await browser.get("/ui/")).body, /sign-out/, "it would come back by itself");
  });

  it("a stream ends when the token is replaced [agent 34.6]", async () => {
    const first = await vault.createUserToken("ada", ["user"]);
    const second = await vault.createUserToken("ada", ["user"]);
    await using site = await Site.start({ auth_method: "token" });
    await site.browser.post("/login/token", { token: first });
    await site.signedIn();
    const stream = await fetch(`${site.url}/api/v1/events`);
    const ended = stream.text();
    await site.home.write(".daemon-token", second);
    assert.match(await ended, /event: status/);
  });
});

/** Whether the store no longer knows a token: it refuses to look it up. */
async function isGone(token: string): Promise<boolean> {
  return await vault.request("POST", "auth/token/lookup", { token }).then(
    () => false,
    () => true,
  );
}

/** Makes the store ask this entity for a passcode. Gives the seed. */
async function enforceTotp(entityId: string): Promise<string> {
  const method = await vault.request("POST", "identity/mfa/method/totp", { issuer: "test", period: 30 });
  const methodId = (method.body["data"] as { method_id: string }).method_id;
  const generated = await vault.request("POST", "identity/mfa/method/totp/admin-generate", {
    method_id: methodId,
    entity_id: entityId,
  });
  await vault.request("POST", "identity/mfa/login-enforcement/mia", {
    mfa_method_ids: [methodId],
    identity_entity_ids: [entityId],
  });
  return new URL((generated.body["data"] as { url: string }).url).searchParams.get("secret") ?? "";
}

/** RFC 6238 with SHA-1, 6 digits and 30 seconds. */
function totp(secret: string): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  const bits = Array.from(secret, (char) => alphabet.indexOf(char).toString(2).padStart(5, "0")).join("");
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
  const digest = createHmac("sha1", key).update(counter).digest();
  const offset = (digest.at(-1) ?? 0) & 0xf;
  return String((digest.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}
