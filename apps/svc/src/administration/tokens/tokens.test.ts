import type { GitAction } from "../../scopes/required-permissions.ts";
import type { Actor } from "../../identity/principal.ts";
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { silentLogger, type Clock } from "@devplat/base";
import { Accounts } from "../../identity/accounts/accounts.ts";
import { codeHostFor } from "../../code-host/code-host-for.ts";
import { FieldError } from "../../errors.ts";
import type { AuditEvent } from "../../audit/audit-event.ts";
import { NO_CLIENT } from "../../identity/client.ts";
import { Sessions } from "../../identity/login/sessions.ts";
import { TestLogin } from "../sessions/test-login.ts";
import { OwnAddress } from "../../own-address.ts";
import { memoryStore } from "../../storage/memory.test-kit.ts";
import type { Store } from "../../storage/store.ts";
import type { Forward } from "../../tokens/admission.ts";
import { AddressList, addressFault } from "@devplat/config/address-list";
import { createToken } from "../../credentials/token-format.ts";
import { lifetimeOf } from "../../tokens/duration.ts";
import { ForeignCredentialPolicy } from "../../tokens/foreign-credential-policy.ts";
import { TokenCheck, type TokenCheckParts } from "../../tokens/token-check.ts";
import { TokenRate } from "../../tokens/token-rate.ts";
import { TokenLookup } from "../../tokens/token-lookup.ts";
import type { TokenRequest } from "./token-input.ts";
import { Tokens } from "./tokens.ts";
import { TokenUses } from "../../tokens/token-uses.ts";

const START = 1_800_000_000_000;
const READ: GitAction = { owner: "acme", name: "widgets", resource: "contents", level: "read" };
const WRITE: GitAction = { ...READ, level: "write" };

describe("an address list", () => {
  it("holds addresses and networks of both families", () => {
    const list = new AddressList(["10.0.0.0/8", "2001:db8::1"]);
    for (const inside of ["10.1.2.3", "::ffff:10.9.9.9", "2001:db8::1"]) assert.equal(list.has(inside), true);
    for (const outside of ["11.0.0.1", "::ffff:11.0.0.1", "2001:db8::2", "", "x"]) {
      assert.equal(list.has(outside), false);
    }
    for (const bad of ["", "x", "10.0.0.0/33", "10.0.0.1/8/9", "::1/129", "10.0.0.0/"]) {
      assert.notEqual(addressFault(bad), undefined, bad);
    }
  });
});

/** The check of tokens behind a policy that has no rules. */
function checkOf(parts: TokenCheckParts): ForeignCredentialPolicy {
  const rules = { blockTokenPrefixes: [], blockAnonymousGit: false, allowedOwners: [] };
  return new ForeignCredentialPolicy(new TokenCheck(parts), rules, () => false);
}

describe("making and using tokens", () => {
  let store: Store;
  let now: number;
  let tokens: Tokens;
  let check: ForeignCredentialPolicy;
  let uses: TokenUses;
  let login: TestLogin;
  let response: "readable" | "refused" | "moved";
  let alice: Actor;
  const events: AuditEvent[] = [];
  const clock: Clock = { now: () => now, monotonic: () => now, sleep: async () => undefined };
  const request: TokenRequest = {
    repository: "acme/widgets",
    scopes: "contents:read",
    duration: "1h",
    type: "proxy",
    ip_allow: [],
  };

  beforeEach(async () => {
    now = START;
    response = "readable";
    store = await memoryStore();
    const lookup = new TokenLookup(store, clock);
    uses = new TokenUses(store.tokens, clock, silentLogger);
    const address = new OwnAddress("http://svc.example");
    const accounts = new Accounts({ store, oauth: undefined, clock, logger: silentLogger });
    check = checkOf({
      lookup,
      uses,
      rate: new TokenRate(0, clock),
      accounts,
      allowed: { isStillAllowed: async () => true },
      installations: undefined,
      codeHost: codeHostFor({ kind: "github", url: "https://github.com", api_url: undefined }),
      address,
      clock,
      logger: silentLogger,
    });
    events.length = 0;
    tokens = new Tokens({
      store,
      knowsApps: true,
      lookup,
      probe: { ask: async () => response },
      accounts,
      installations: undefined,
      audit: { record: (event) => void events.push(event) },
      clock,
      maxDurationMs: 168 * 3_600_000,
      allowUnrestricted: false,
      allowNever: false,
    });
    const sessions = new Sessions(store, clock, { admins: [], recordedRoles: true });
    const audit = { record: () => undefined };
    login = new TestLogin({ store, sessions, accounts, audit, clock, defaultHostToken: undefined });
    alice = await loggedIn({ username: "alice", host_token: "ghp_alice" });
  });
  afterEach(async () => store.close());

  const loggedIn = async (input: Readonly<Record<string, string>>): Promise<Actor> => ({
    ...(await login.logIn(input, NO_CLIENT)).identity,
    client: NO_CLIENT,
  });
  const minted = async (change: Partial<TokenRequest> = {}): Promise<{ token: string; id: string }> => {
    const { token, record } = await tokens.create(alice, { ...request, ...change }, true);
    return { token: token.reveal(), id: record.id };
  };
  const status = async (
    token: string,
    action: GitAction | undefined = READ,
    ip = "10.0.0.1",
  ): Promise<number> => {
    const admission = await check.admit(`Bearer ${token}`, action, ip);
    return admission.kind === "forward" ? 200 : admission.status;
  };

  it("a proxy token is replaced by the stored credential in the code host's form", async () => {
    const { token, id } = await minted();
    const { renew, ...admission } = (await check.admit(
      `Basic ${btoa(`x:${token}`)}`,
      READ,
      "10.0.0.1",
    )) as Forward;
    assert.equal(typeof renew, "function");
    assert.deepEqual(admission, {
      kind: "forward",
      authorization: `Basic ${btoa("x-access-token:ghp_alice")}`,
      principal: { kind: "proxy_token", login: "alice", tokenId: id },
      whenUnauthorized:
        "The code host does not take the stored credential of alice any more: connect the account again at http://svc.example/ui",
    });
  });

  it("without a stored credential the request is sent upstream anonymously", async () => {
    alice = await loggedIn({ username: "bob" });
    const { token } = await minted();
    const admission = await check.admit(`Bearer ${token}`, READ, "10.0.0.1");
    assert.equal(admission.kind === "forward" && admission.authorization === undefined, true);
  });

  it("a token opens its repositories only, in any case of letters", async () => {
    const { token } = await minted({ repository: undefined, repositories: ["Acme/Widgets", "acme/b"] });
    assert.equal(await status(token), 200);
    assert.equal(await status(token, { ...READ, name: "other" }), 403);
    assert.equal(await status(token, { ...READ, owner: "evil" }), 403);
    const kernel = await minted({ repository: "kernel/x" });
    assert.equal(await status(kernel.token, { ...READ, owner: "Kernel", name: "x" }), 200);
    assert.equal(await status(kernel.token, { ...READ, owner: "\u212aernel", name: "x" }), 403);
  });

  it("a read token does not push, a write token reads, others open nothing", async () => {
    assert.equal(await status((await minted()).token, WRITE), 403);
    const writer = await minted({ scopes: "contents:write" });
    assert.equal(await status(writer.token, READ), 200);
    assert.equal(await status(writer.token, WRITE), 200);
    assert.equal(await status((await minted({ scopes: "issues:write" })).token), 403);
  });

  it("an action that is not classified is refused [svc 9.7]", async () => {
    const { token } = await minted({ scopes: "contents:write" });
    const admission = await check.admit(`Bearer ${token}`, undefined, "10.0.0.1");
    assert.equal(admission.kind === "refuse" && admission.status, 403);
  });

  it("unknown, expired and revoked tokens are 401 with a challenge immediately [svc 9.4]", async () => {
    const { token, id } = await minted({ duration: "60s" });
    assert.equal(await status(token), 200);
    now += 60_000;
    assert.equal(await status(token), 401);
    const second = await minted();
    assert.equal(await status(second.token), 200);
    await tokens.revoke(alice, (await tokens.list(alice)).records[0]?.id ?? "");
    assert.equal(await status(second.token), 401);
    assert.notEqual(id, "");
    for (const unknown of [
      createToken("proxy").reveal(),
      createToken("agent").reveal(),
      "svcx_",
      "svcx_short",
    ]) {
      const admission = await check.admit(`Bearer ${unknown}`, READ, "10.0.0.1");
      assert.equal(admission.kind === "refuse" && admission.status, 401);
      assert.deepEqual(admission.kind === "refuse" && admission.headers, {
        "WWW-Authenticate": 'Basic realm="svc"',
      });
    }
  });

  it("a revocation by another instance takes effect within a second", async () => {
    const { token, id } = await minted();
    assert.equal(await status(token), 200);
    await store.tokens.revoke(id, now);
    now += 1000;
    assert.equal(await status(token), 401);
  });

  it("a session token does not open repositories: 403", async () => {
    assert.equal(await status(createToken("session").reveal()), 403);
  });

  it("a token with an address list works from there only [svc 9.6]", async () => {
    const { token } = await minted({ ip_allow: ["10.0.0.0/8"] });
    assert.equal(await status(token, READ, "::ffff:10.1.1.1"), 200);
    assert.equal(await status(token, READ, "192.168.0.1"), 403);
  });

  it("a new credential of the user takes effect immediately", async () => {
    const { token } = await minted();
    await check.admit(`Bearer ${token}`, READ, "10.0.0.1");
    await loggedIn({ username: "ALICE", host_token: "ghp_new" });
    const admission = await check.admit(`Bearer ${token}`, READ, "10.0.0.1");
    assert.equal(
      admission.kind === "forward" && admission.authorization,
      `Basic ${btoa("x-access-token:ghp_new")}`,
    );
  });

  /** Responses to tokens that share this limit: 200, or the time to wait. */
  const askerAt = (perMinute: number): ((token: string) => Promise<number | string | undefined>) => {
    const limited = checkOf({
      lookup: new TokenLookup(store, clock),
      uses,
      rate: new TokenRate(perMinute, clock),
      accounts: new Accounts({ store, oauth: undefined, clock, logger: silentLogger }),
      allowed: { isStillAllowed: async () => true },
      installations: undefined,
      codeHost: codeHostFor({ kind: "github", url: "https://github.com", api_url: undefined }),
      address: new OwnAddress("http://svc.example"),
      clock,
      logger: silentLogger,
    });
    return async (token) => {
      const admission = await limited.admit(`Bearer ${token}`, READ, "10.0.0.1");
      return admission.kind === "forward" ? 200 : admission.headers["Retry-After"];
    };
  };

  it("a token over its rate is 429 with the time to wait, others are not [svc 11.4]", async () => {
    const ask = askerAt(2);
    const [one, other] = [await minted(), await minted()];
    assert.deepEqual([await ask(one.token), await ask(one.token), await ask(one.token)], [200, 200, "30"]);
    assert.equal(await ask(other.token), 200);
    now += 30_000;
    assert.equal(await ask(one.token), 200);
  });

  it("requests_per_minute limits one token, with and without a common limit [svc 11.4]", async () => {
    for (const common of [10, 0]) {
      const ask = askerAt(common);
      const [slow, other] = [await minted({ requests_per_minute: 1 }), await minted()];
      assert.deepEqual([await ask(slow.token), await ask(slow.token)], [200, "60"], `common bound ${common}`);
      assert.deepEqual([await ask(other.token), await ask(other.token)], [200, 200]);
    }
    const ask = askerAt(1);
    const { token } = await minted({ requests_per_minute: 100 });
    assert.deepEqual([await ask(token), await ask(token)], [200, "60"], "the common limit holds, too");
  });

  it("a database that does not respond is 503, never an authorization", async () => {
    const { token } = await minted();
    await store.close();
    assert.equal(await status(token), 503);
    store = await memoryStore();
  });

  it("uses are counted, and only admitted ones", async () => {
    const { token, id } = await minted();
    await status(token);
    await status(token);
    await status(token, WRITE);
    await uses.flush();
    const record = await tokens.get(alice, id);
    assert.deepEqual([record.useCount, record.lastUsedAt, record.lastIp], [2, START, "10.0.0.1"]);
  });

  const wrong: [name: string, change: Partial<TokenRequest>, pointers: string[]][] = [
    ["no repository", { repository: undefined }, ["/repository"]],
    ["an empty list", { repository: undefined, repositories: [] }, ["/repositories"]],
    ["both forms", { repositories: ["a/b"] }, ["/repositories"]],
    ["a repository without owner", { repository: "widgets" }, ["/repository"]],
    ["a path that climbs", { repository: "../x" }, ["/repository"]],
    [
      "a second one that is wrong",
      { repository: undefined, repositories: ["a/b", "a"] },
      ["/repositories/1"],
    ],
    ["everything", { repository: "*" }, ["/repository"]],
    ["every scope", { scopes: "*" }, ["/scopes"]],
    ["no scope", { scopes: "" }, ["/scopes"]],
    ["two unknown scopes", { scopes: "a:read,b:read" }, ["/scopes", "/scopes"]],
    ["a duration without unit", { duration: "60" }, ["/duration"]],
    ["milliseconds", { duration: "90000ms" }, ["/duration"]],
    ["too short", { duration: "59s" }, ["/duration"]],
    ["too long", { duration: "169h" }, ["/duration"]],
    ["never", { duration: "never" }, ["/duration"]],
    ["an address that is none", { ip_allow: ["10.0.0.1", "x"] }, ["/ip_allow/1"]],
    [
      "several at once",
      { repository: "x", scopes: "a:read", duration: "1" },
      ["/repository", "/scopes", "/duration"],
    ],
  ];
  for (const [name, change, pointers] of wrong) {
    it(`a token request is refused by field: ${name}`, async () => {
      await assert.rejects(minted(change), (error) => {
        assert.ok(error instanceof FieldError);
        assert.deepEqual(
          error.faults.map(({ pointer }) => pointer),
          pointers,
        );
        return true;
      });
    });
  }

  it("a repository that the caller cannot reach is refused if checked [svc 9.9]", async () => {
    response = "refused";
    await assert.rejects(minted(), /not readable at the code host with your stored credential/);
    response = "moved";
    await assert.rejects(minted(), /has moved/);
    assert.notEqual((await tokens.create(alice, request, false)).token, undefined);
  });

  it("an agent token needs an admin, then an app", async () => {
    await assert.rejects(minted({ type: "agent" }), { code: "forbidden" });
    alice = { ...alice, role: "admin" };
    await assert.rejects(minted({ type: "agent" }), { code: "no_app" });
  });

  it("a user sees and revokes only own tokens, an admin all [svc 9.10]", async () => {
    const { id } = await minted();
    const bob = await loggedIn({ username: "bob" });
    assert.deepEqual((await tokens.list(bob)).records, []);
    await assert.rejects(tokens.revoke(bob, id), { code: "not_found" });
    const admin: Actor = { ...bob, role: "admin" };
    assert.equal((await tokens.list(admin)).records.length, 1);
    await tokens.revoke(admin, id);
    await assert.rejects(tokens.get(admin, id), { code: "not_found" });
  });

  it("creation and revocation are recorded once each, without the token [svc 9.11]", async () => {
    const { token, id } = await minted();
    await tokens.revoke(alice, id);
    await assert.rejects(tokens.revoke(alice, id), { code: "not_found" });
    assert.deepEqual(
      events.map(({ action, target, actor }) => [action, target, actor.login]),
      [
        ["token.created", id, "alice"],
        ["token.revoked", id, "alice"],
      ],
    );
    assert.equal(JSON.stringify(events).includes(token), false);
  });

  it("limits of a duration are shown in one unit", () => {
    for (const [max, text] of [
      [365 * 86_400_000, "must be at most 365d"],
      [168 * 3_600_000, "must be at most 1w"],
      [5_400_000, "must be at most 90m"],
    ] as const) {
      assert.equal(lifetimeOf("400d", max), text);
    }
    assert.equal(lifetimeOf("59s", 1e9), "must be at least 1m");
  });

  it("never is refused where tokens.allow_never is false [svc 11.6]", async () => {
    await assert.rejects(minted({ duration: "never" }), (error: FieldError) => {
      assert.match(error.faults[0]?.message ?? "", /tokens\.allow_never/);
      return true;
    });
  });

  it("a leaked token is revoked by its value, twice if need be", async () => {
    const { token } = await minted();
    await tokens.revokeByValue(alice, token);
    assert.equal(await status(token), 401);
    await tokens.revokeByValue(alice, token);
    assert.equal(events.filter(({ action }) => action === "token.revoked").length, 1);
    await assert.rejects(tokens.revokeByValue(alice, createToken("proxy").reveal()), {
      code: "not_found",
    });
  });
});
