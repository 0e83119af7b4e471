import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { setImmediate as yieldToOthers } from "node:timers/promises";
import { Secret, silentLogger, systemClock, type Clock } from "@devplat/base";
import { startCodeHost, type CodeHost } from "@devplat/testkit";
import { codeHostFor } from "../../code-host/code-host-for.ts";
import { HostClient } from "../../code-host/host-client.ts";
import { HostOauth } from "../../code-host/host-oauth.ts";
import { memoryStore } from "../../storage/memory.test-kit.ts";
import type { Store } from "../../storage/store.ts";
import { Accounts } from "./accounts.ts";
import type { HostCredential } from "../../code-host/host-account.ts";

const CALLBACK = "http://svc.example/auth/callback";
const HOUR = 3_600_000;
const TOKEN_PATH = /^\/login\/oauth\/access_token$/;

describe("code-host accounts", () => {
  let host: CodeHost;
  let store: Store;
  let now: number;
  let oauth: HostOauth;
  const clock: Clock = { now: () => now, monotonic: () => now, sleep: async () => yieldToOthers() };

  before(async () => {
    host = await startCodeHost();
    const options = { host: codeHostFor({ kind: "github", url: host.url, api_url: host.apiUrl }), clock };
    const clientSecret = new Secret(host.oauth.clientSecret);
    oauth = new HostOauth({
      ...options,
      client: new HostClient(),
      clientId: host.oauth.clientId,
      clientSecret,
    });
  });
  after(async () => host.stop());
  beforeEach(async () => {
    now = systemClock.now();
    store = await memoryStore();
    await store.users.ensure("alice", "u1", now);
    host.oauth.settings.expiresIn = 28_800;
    host.resetCalls();
  });
  afterEach(async () => {
    host.clearFaults();
    await store.close();
  });

  const accounts = (): Accounts => new Accounts({ store, oauth, clock, logger: silentLogger });
  /** Logs in at the code host and returns the credential. */
  const login = async (): Promise<HostCredential> => {
    const url = oauth.authorizeUrl({ state: "s", challenge: "", redirectUri: CALLBACK });
    const back = await fetch(url.replace("&code_challenge=&", "&"), { redirect: "manual" });
    const code = new URL(back.headers.get("location") ?? "").searchParams.get("code") ?? "";
    return oauth.exchange({ code, verifier: new Secret("v".repeat(43)), redirectUri: CALLBACK });
  };
  const renewals = (): number => host.calls.filter(({ path }) => TOKEN_PATH.test(path)).length;

  it("no account is undefined, and one without an end is given as it is", async () => {
    const here = accounts();
    assert.equal(await here.accessToken("u1"), undefined);
    assert.equal(await here.state("u1"), "none");
    await here.connect("u1", { accessToken: new Secret("t"), refreshToken: undefined, expiresAt: undefined });
    assert.equal((await here.accessToken("u1"))?.reveal(), "t");
    assert.equal(await here.state("u1"), "connected");
  });

  it("a token is renewed five minutes before its end, and the refresh token rotates", async () => {
    const here = accounts();
    const first = await login();
    await here.connect("u1", first);
    host.resetCalls();
    now += 8 * HOUR - 5 * 60_000 - 1;
    assert.equal((await here.accessToken("u1"))?.reveal(), first.accessToken.reveal());
    assert.equal(renewals(), 0);
    now += 1;
    const second = (await here.accessToken("u1"))?.reveal() ?? "";
    assert.notEqual(second, first.accessToken.reveal());
    assert.equal(host.oauth.isLive(second), true);
    now += 8 * HOUR;
    const third = (await here.accessToken("u1"))?.reveal() ?? "";
    assert.equal(host.oauth.isLive(third), true);
    assert.equal(renewals(), 2);
  });

  it("one renewal at a time per user, in one instance and over several", async () => {
    const instances = [accounts(), accounts(), accounts()];
    await instances[0]?.connect("u1", await login());
    host.resetCalls();
    now += 8 * HOUR;
    host.inject({ path: TOKEN_PATH }, { delayMs: 50 });
    const tokens = await Promise.all(
      [...instances, ...instances].map(async (each) => (await each.accessToken("u1"))?.reveal()),
    );
    assert.equal(renewals(), 1);
    assert.equal(new Set(tokens).size, 1);
    assert.equal(host.oauth.isLive(tokens[0] ?? ""), true);
  });

  it("an instance that dies in a renewal delays the others only until its lease ends", async () => {
    await accounts().connect("u1", await login());
    now += 8 * HOUR;
    await store.leases.acquire("account/u1", "the-dead", 30);
    const sleep = async (ms: number): Promise<void> => {
      now += ms;
      await systemClock.sleep(5);
    };
    const waiting: Clock = { ...clock, sleep };
    const here = new Accounts({ store, oauth, clock: waiting, logger: silentLogger });
    const token = await here.accessToken("u1");
    assert.equal(host.oauth.isLive(token?.reveal() ?? ""), true);
  });

  it("after a refusal it renews once, and not if another instance renewed already", async () => {
    const here = accounts();
    const first = await login();
    await here.connect("u1", first);
    host.oauth.expire(first.accessToken.reveal());
    host.resetCalls();
    const second = await here.renewAfterRefusal("u1", first.accessToken);
    assert.equal(host.oauth.isLive(second?.reveal() ?? ""), true);
    const again = await accounts().renewAfterRefusal("u1", first.accessToken);
    assert.equal(again?.reveal(), second?.reveal());
    assert.equal(renewals(), 1);
  });

  it("a refresh token that is not taken means: connect again", async () => {
    const here = accounts();
    await here.connect("u1", {
      accessToken: new Secret("old"),
      refreshToken: new Secret("gone"),
      expiresAt: now + 1000,
    });
    now += 2000;
    assert.equal(await here.accessToken("u1"), undefined);
    assert.equal(await here.state("u1"), "expired");
    assert.equal(renewals(), 1);
    assert.equal(await here.accessToken("u1"), undefined);
    assert.equal(renewals(), 1);
  });

  it("a failed renewal keeps the account, and the token until it expires", async () => {
    const here = accounts();
    const first = await login();
    await here.connect("u1", first);
    host.inject({ path: TOKEN_PATH, times: 2 }, { status: 503, body: "<html>down" });
    now += 8 * HOUR - 60_000;
    assert.equal((await here.accessToken("u1"))?.reveal(), first.accessToken.reveal());
    now += 2 * 60_000;
    assert.equal(await here.accessToken("u1"), undefined);
    assert.equal(await here.state("u1"), "connected");
    assert.equal(host.oauth.isLive((await here.accessToken("u1"))?.reveal() ?? ""), true);
  });

  it("errors that are not about the refresh token do not give it up", async () => {
    const here = accounts();
    await here.connect("u1", await login());
    now += 8 * HOUR;
    for (const error of ["temporarily_unavailable", "slow_down", "incorrect_client_credentials", "unknown"]) {
      host.inject({ path: TOKEN_PATH, times: 1 }, { status: 200, body: JSON.stringify({ error }) });
      assert.equal(await here.accessToken("u1"), undefined, error);
      assert.equal(await here.state("u1"), "connected", error);
    }
    assert.equal(host.oauth.isLive((await here.accessToken("u1"))?.reveal() ?? ""), true);
  });

  it("disconnecting forgets the credential, even if the code host cannot revoke it", async () => {
    const here = accounts();
    const first = await login();
    await here.connect("u1", first);
    assert.equal(await here.disconnect("u1"), true);
    assert.equal(host.oauth.isLive(first.accessToken.reveal()), false);
    assert.equal(await here.accessToken("u1"), undefined);
    assert.equal(await here.disconnect("u1"), false);
    await here.connect("u1", await login());
    host.inject({ path: /applications/ }, { status: 500 });
    assert.equal(await here.disconnect("u1"), true);
    assert.equal(await here.accessToken("u1"), undefined);
  });

  it("another instance's change is seen after a second", async () => {
    const [here, there] = [accounts(), accounts()];
    await here.connect("u1", { accessToken: new Secret("a"), refreshToken: undefined, expiresAt: undefined });
    assert.equal((await here.accessToken("u1"))?.reveal(), "a");
    await there.connect("u1", {
      accessToken: new Secret("b"),
      refreshToken: undefined,
      expiresAt: undefined,
    });
    now += 1000;
    assert.equal((await here.accessToken("u1"))?.reveal(), "b");
  });
});
