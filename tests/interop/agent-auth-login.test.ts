import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { freePort, startSlapd, startVault, until, type Slapd, type Vault } from "@devplat/testkit";
import { AgentHome, writePolicies } from "./agent-auth-stand.ts";

/** Must be seen nowhere. */
const PASSWORD = "ada-hunter2-password";
const homes: AgentHome[] = [];
let vault: Vault;
let slapd: Slapd;

async function home(store: Record<string, unknown>, more = ""): Promise<AgentHome> {
  const created = await AgentHome.create({ address: vault.address, username: "ada", ...store }, more);
  homes.push(created);
  return created;
}

before(async () => {
  [vault, slapd] = await Promise.all([
    startVault({ ldapPlugin: true }),
    startSlapd({ ada: PASSWORD, bob: "bob-password", mia: "mia-password" }),
  ]);
  await writePolicies(vault);
  await vault.request("POST", "sys/auth/ldap", { type: "vault-ldap", config: { default_lease_ttl: "1h" } });
  await vault.request("POST", "auth/ldap/config", {
    url: slapd.url,
    userdn: slapd.usersDn,
    userattr: "uid",
    token_policies: ["user", "reader"],
  });
});
after(async () => {
  await Promise.all([vault.stop(), slapd.stop(), ...homes.map((each) => each.remove())]);
});

const ldap = { auth_method: "ldap" };
const password = [/Password of ada: /, PASSWORD] as const;

describe("agent login by ldap", () => {
  it("keeps a token in a 0600 file, and the password nowhere [agent 10.10]", async () => {
    const place = await home(ldap);
    const { code, shown } = await place.atTerminal(["login", "--log-level", "debug"], [password]);
    assert.equal(code, 0, shown);
    assert.match(shown, /Signed in as ldap-ada, until \d{4}-/);
    assert.equal(await place.modeOf(".daemon-token"), 0o600);
    const token = (await place.token()) ?? "";
    assert.match(token, /^hvs\./);
    assert.ok(!shown.includes(PASSWORD) && !shown.includes(token));
    const status = await place.status();
    assert.equal(status.auth.source, "file");
    assert.ok((status.auth.token_ttl_seconds ?? 0) > 3500);
    const state = await place.read(".local/state/daemon/identity.json");
    assert.ok(!state.includes(token) && !state.includes(PASSWORD));
  });

  it("a wrong password is exit 1 with one line, and leaves the token as it was", async () => {
    const place = await home(ldap);
    const { code, shown } = await place.atTerminal(["login"], [[/Password/, "wrong-hunter2"]]);
    assert.equal(code, 1);
    assert.match(shown, /agent: the directory does not accept this user name and password/);
    assert.doesNotMatch(shown, /hunter2/);
    assert.equal(await place.token(), undefined);
  });

  it("a mount that is missing or cannot ask the directory does not blame the password", async () => {
    await vault.request("POST", "sys/auth/ldap-unreachable", { type: "vault-ldap" });
    await vault.request("POST", "auth/ldap-unreachable/config", {
      url: `ldap://127.0.0.1:${await freePort()}`,
      userdn: slapd.usersDn,
    });
    const table: [mount: string, reason: RegExp][] = [
      ["not-there", /agent: the store has no login at auth\/not-there, or has locked this user/],
      ["ldap-unreachable", /agent: POST auth\/ldap-unreachable\/login\/ada: the store answered 500/],
    ];
    for (const [mount, reason] of table) {
      const place = await home({ ...ldap, auth_mount: mount });
      const { code, shown } = await place.atTerminal(["login"], [password]);
      assert.equal(code, 1, mount);
      assert.match(shown, reason);
      assert.doesNotMatch(shown, /user name and password/);
    }
  });

  it("a missing mount for oidc is named as that, not as a fault of the token", async () => {
    const place = await home({ auth_method: "oidc", auth_mount: "not-there" });
    const { code, shown } = await place.atTerminal(["login"], []);
    assert.equal(code, 1);
    assert.match(shown, /agent: the store offers no OIDC login/);
    assert.match(shown, /store\.auth_mount/);
  });

  it("without a terminal it is given up, and says so", async () => {
    const place = await home(ldap);
    const { code, stderr } = await place.agent(["login"]);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /the login was given up: there is no terminal to ask on\n.*AGENT_TOKEN.*\.daemon-token/is,
    );
  });

  it("warns that AGENT_TOKEN comes before the login [agent 10.28]", async () => {
    const place = await home(ldap);
    const { code, shown } = await place.atTerminal(["login"], [password], { AGENT_TOKEN: "x" });
    assert.equal(code, 0, shown);
    assert.match(shown, /AGENT_TOKEN is set and comes before this login/);
  });

  it("--dry-run makes no login [agent 6.6]", async () => {
    const place = await home(ldap);
    assert.match(await place.ok("login", "--dry-run"), /would sign in by ldap/);
    assert.equal(await place.token(), undefined);
  });
});

describe("the pinned identity", () => {
  it("refuses a login as somebody else, revokes its token, and takes it with --switch [agent 10.8]", async () => {
    const place = await home(ldap);
    assert.equal((await place.atTerminal(["login"], [password])).code, 0);
    const token = await place.token();
    await place.configure({ address: vault.address, username: "bob", ...ldap });
    const bob = [/Password of bob: /, "bob-password"] as const;
    const accessors = async (): Promise<number> => {
      const { body } = await vault.request("LIST", "auth/token/accessors");
      return (body["data"] as { keys: unknown[] }).keys.length;
    };
    const count = await accessors();
    const refused = await place.atTerminal(["login"], [bob]);
    assert.equal(refused.code, 1);
    assert.match(refused.shown, /another identity than the last one[^]*agent login --switch/);
    assert.equal(await place.token(), token);
    assert.equal(await accessors(), count, "the refused login's token is revoked");
    const switched = await place.atTerminal(["login", "--switch"], [bob]);
    assert.match(switched.shown, /Signed in as ldap-bob/);
    assert.notEqual(await place.token(), token);
  });
});

describe("a second factor", () => {
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

  it("a passcode (TOTP by sys/mfa/validate) can be given again after a wrong one [agent 10.10]", async () => {
    const place = await home({ ...ldap, username: "mia" });
    const mia = [/Password of mia: /, "mia-password"] as const;
    // Her entity comes with the first login, which has no second factor yet.
    assert.equal((await place.atTerminal(["login"], [mia])).code, 0);
    const pin = JSON.parse(await place.read(".local/state/daemon/identity.json"));
    const method = await vault.request("POST", "identity/mfa/method/totp", { issuer: "test", period: 30 });
    const methodId = (method.body["data"] as { method_id: string }).method_id;
    const generated = await vault.request("POST", "identity/mfa/method/totp/admin-generate", {
      method_id: methodId,
      entity_id: pin.entity_id,
    });
    const { url } = generated.body["data"] as { url: string };
    await vault.request("POST", "identity/mfa/login-enforcement/mia", {
      mfa_method_ids: [methodId],
      identity_entity_ids: [pin.entity_id],
    });
    const secret = new URL(url).searchParams.get("secret") ?? "";
    const first = await place.token();
    const wrong = String((Number(totp(secret)) + 1) % 1_000_000).padStart(6, "0");
    const { code, shown } = await place.atTerminal(
      ["login"],
      [mia, [/Passcode \(totp\): /, wrong], [/Passcode \(totp\): /, () => totp(secret)]],
    );
    assert.equal(code, 0, shown);
    assert.match(shown, /The passcode was not accepted/);
    assert.notEqual(await place.token(), first);
  });

  it("waits for a push approval (a stub in place of the store answers late) [agent 10.10]", async () => {
    let approve: (() => void) | undefined;
    const stub = await startStub((path, answer) => {
      const id = "the-push-method";
      if (path.startsWith("/v1/auth/ldap/login/")) {
        const any = [{ type: "duo", id, uses_passcode: false }];
        return answer({
          auth: { mfa_requirement: { mfa_request_id: "r", mfa_constraints: { one: { any } } } },
        });
      }
      if (path === "/v1/sys/mfa/validate") {
        approve = () => answer({ auth: { client_token: "hvs.pushed" } });
        return undefined;
      }
      return answer({ data: { ttl: 60, creation_ttl: 60, display_name: "ldap-ada", entity_id: "e" } });
    });
    try {
      const place = await home({ ...ldap, address: stub.url });
      const session = place.atTerminal(["login"], [password], {}, (shown) => {
        if (shown.includes("Approve the login on your device (duo)")) approve?.();
      });
      await until(() => approve !== undefined);
      setTimeout(() => approve?.(), 300);
      assert.match(
        (await session).shown,
        /Approve the login on your device \(duo\)[^]*Signed in as ldap-ada/,
      );
      assert.equal(await place.token(), "hvs.pushed");
    } finally {
      stub.server.closeAllConnections();
      stub.server.close();
    }
  });
});

async function startStub(
  answerTo: (path: string, answer: (body: object) => void) => void,
): Promise<{ url: string; server: Server }> {
  const server = createServer((request, response) => {
    request.resume();
    answerTo(request.url ?? "", (body) => {
      if (!response.writableEnded) response.end(JSON.stringify({ request_id: "r", lease_id: "", ...body }));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

describe("downscoping", () => {
  it("the kept token is a child with the policies of store.policies only [agent 4.11]", async () => {
    const place = await home({ ...ldap, policies: ["reader"], no_default_policy: true });
    const { code, shown } = await place.atTerminal(["login"], [password]);
    assert.equal(code, 0, shown);
    const { body } = await vault.request("POST", "auth/token/lookup", { token: await place.token() });
    const data = body["data"] as { policies: string[]; orphan: boolean; ttl: number; renewable: boolean };
    assert.deepEqual(data.policies, ["reader"]);
    assert.equal(data.orphan, false);
    assert.ok(data.ttl > 3500 && data.ttl <= 3600 && data.renewable, "as long as the login's own");
    assert.equal((await place.status()).authenticated, true);
  });

  it("failing it fails the login, and nothing is kept [agent 10.18]", async () => {
    const place = await home({ ...ldap, policies: ["not-mine"] });
    const { code, shown } = await place.atTerminal(["login"], [password]);
    assert.equal(code, 1);
    assert.match(shown, /gives no token with the policies of store\.policies/);
    assert.equal(await place.token(), undefined);
  });
});

describe("agent login by token", () => {
  it("keeps a pasted token that the store accepts, and does not revoke it [agent 10.12]", async () => {
    const place = await home({});
    const token = await vault.createUserToken("ada", ["user"]);
    const { code, shown } = await place.atTerminal(["login"], [[/Token for the secrets store: /, token]]);
    assert.equal(code, 0, shown);
    assert.ok(!shown.includes(token));
    assert.equal(await place.token(), token);
    const foreign = await vault.createUserToken("eve", ["user"]);
    assert.equal((await place.atTerminal(["login"], [[/Token/, foreign]])).code, 1);
    await vault.request("POST", "auth/token/lookup", { token: foreign });
    const { code: ended, stderr } = await place.agent(["logout", "--revoke"]);
    assert.equal(ended, 1);
    assert.match(stderr, /not revoked: it is not of a login of this program/);
    await vault.request("POST", "auth/token/lookup", { token });
    assert.equal(await place.token(), undefined);
  });

  it("refuses one that the store does not know, without repeating it", async () => {
    const place = await home({});
    const { code, shown } = await place.atTerminal(["login"], [[/Token/, "hvs.hunter2"]]);
    assert.equal(code, 1);
    assert.match(shown, /the store does not accept the token/);
    assert.doesNotMatch(shown, /hunter2/);
  });
});

describe("agent logout", () => {
  it("--revoke ends the token of our own login in the store too [agent 10.27]", async () => {
    const place = await home(ldap);
    assert.equal((await place.atTerminal(["login"], [password])).code, 0);
    const token = await place.token();
    assert.match(await place.ok("logout", "--revoke"), /token file is removed[^]*The token is revoked/);
    assert.equal(await place.token(), undefined);
    await assert.rejects(vault.request("POST", "auth/token/lookup", { token }), /403/);
    assert.match(await place.ok("logout"), /There was no token file/);
  });
});

describe("a token of a peer", () => {
  async function lendingHome(token: string, store: Record<string, unknown> = {}) {
    const place = await home(store);
    await place.write(".ssh/keep", "");
    const peer = createServer((_request, response) =>
      response.end(JSON.stringify({ token, expires_at: null })),
    );
    peer.listen(join(place.path, ".ssh/daemon.host.sock"));
    await once(peer, "listening");
    return { place, peer };
  }

  it("is used where there is none here, is kept nowhere, and status names the socket [agent 9.2 10.35]", async () => {
    const token = await vault.createUserToken("ada", ["user"]);
    const { place, peer } = await lendingHome(token, { borrow_only: true });
    try {
      const status = await place.status();
      assert.equal(status.authenticated, true);
      assert.equal(status.auth.borrowed_from, join(place.path, ".ssh/daemon.host.sock"));
      assert.match(await place.ok("status"), /authenticated, by a token borrowed from \S+daemon\.host\.sock/);
      await place.ok("secrets", "list");
      assert.equal(await place.token(), undefined);
      assert.ok(!(await place.read(".local/state/daemon/identity.json")).includes(token));
    } finally {
      peer.close();
    }
  });

  it("of another identity is refused", async () => {
    const { place, peer } = await lendingHome(await vault.createUserToken("eve", ["user"]));
    try {
      const token = await vault.createUserToken("ada", ["user"]);
      assert.equal((await place.atTerminal(["login"], [[/Token/, token]])).code, 0);
      await place.ok("logout");
      const { code, stderr } = await place.agent(["secrets", "list"]);
      assert.equal(code, 1);
      assert.match(stderr, /another identity/);
    } finally {
      peer.close();
    }
  });

  it("under borrow_only there is no login, ever [agent 4.13]", async () => {
    const place = await home({ borrow_only: true });
    const { code, stderr } = await place.agent(["login"]);
    assert.equal(code, 1);
    assert.match(stderr, /store\.borrow_only is set/);
    const check = await place.agent(["login-check"]);
    assert.deepEqual([check.code, check.stdout], [0, ""]);
  });
});

describe("the daemon", () => {
  const rule = `rules: [{name: r, key: k, target: {path: ~/out.yaml, format: yaml}}]\n`;

  it("waits with the reason, notices a login and a logout, and keeps the files [agent 10.25]", async () => {
    await vault.put("users/ada/k", { value: "one" });
    const place = await home(ldap, rule);
    const daemon = place.daemon();
    try {
      await daemon.logged(/not signed in to the secrets store: no token found/);
      const started = performance.now();
      const { code, shown } = await place.atTerminal(["login"], [password]);
      assert.equal(code, 0, shown);
      await until(
        async () => (await place.read("out.yaml")).includes("one"),
        () => daemon.log(),
      );
      // Not with the next poll, a quarter of an hour later.
      assert.ok(performance.now() - started < 40_000);
      await place.ok("logout");
      await daemon.logged(/signed out reason="the token file has changed"/);
      assert.match(await place.read("out.yaml"), /one/);
      assert.equal((await place.status()).authenticated, false);
      const token = (await place.token()) ?? PASSWORD;
      assert.ok(!daemon.log().includes(token));
    } finally {
      assert.equal(await daemon.stop(), 0);
    }
  });

  /** Ends `agent run` of a home once its file is written. */
  async function stopWhenSynced(place: AgentHome): Promise<void> {
    await until(async () => (await place.read("out.yaml")).includes("one"));
    process.kill(Number(await place.read(".local/state/daemon/daemon.pid")), "SIGTERM");
  }

  it("at a terminal, run and sync sign in first; without one they say how [agent 10.29]", async () => {
    await vault.put("users/ada/k", { value: "one" });
    const place = await home(ldap, rule);
    const bare = await place.agent(["sync"]);
    assert.equal(bare.code, 1);
    assert.match(bare.stderr, /not signed in to the secrets store: no token found\n.*agent login/);
    const synced = await place.atTerminal(["sync"], [password]);
    assert.equal(synced.code, 0, synced.shown);
    assert.match(synced.shown, /no token found[^]*Password of ada:[^]*1 changed, 0 unchanged, 0 failed/);

    const other = await home(ldap, rule);
    const [running] = await Promise.all([other.atTerminal(["run"], [password]), stopWhenSynced(other)]);
    assert.equal(running.code, 0, running.shown);
    assert.equal(await other.modeOf(".daemon-token"), 0o600);
  });

  it("at a terminal waits after a declined login until a token comes another way", async () => {
    await vault.put("users/ada/k", { value: "one" });
    for (const [answers, expected] of [
      [[[/Password of ada: /, ""]], /no login at the terminal; waiting for a token/],
      [[], /Password of ada:/],
    ] as const) {
      const place = await home(ldap, rule);
      const { promise: asked, resolve } = Promise.withResolvers<void>();
      const onOutput = (shown: string): void => void (expected.test(shown) && resolve());
      const running = place.atTerminal(["run"], answers, {}, onOutput);
      await asked;
      await place.write(".daemon-token", await vault.createUserToken("ada", ["user"]));
      await stopWhenSynced(place);
      const { code, shown } = await running;
      assert.equal(code, 0, shown);
    }
  });

  it("renews a token whose life is nearly over, and works on past its first end", async () => {
    const place = await home({}, rule);
    const { body } = await vault.request("POST", "auth/token/create", {
      policies: ["user"],
      ttl: "4s",
      explicit_max_ttl: "1h",
    });
    await place.write(".daemon-token", (body["auth"] as { client_token: string }).client_token);
    const daemon = place.daemon();
    try {
      await daemon.logged(/token renewed[^]*token renewed/);
      assert.doesNotMatch(daemon.log(), /not signed in|token could not/);
    } finally {
      assert.equal(await daemon.stop(), 0);
    }
  });
});
