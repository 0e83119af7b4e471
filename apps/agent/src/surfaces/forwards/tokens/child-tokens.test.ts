import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, afterEach, describe, it } from "node:test";
import { Secret, silentLogger } from "@devplat/base";
import { VaultClient } from "@devplat/secret-store";
import { startVault, tempFolder, until, type TempFolder, type Vault } from "@devplat/testkit";
import { HandClock } from "../../../sync/clock.test-kit.ts";
import { ForwardError } from "../errors/forward-error.ts";
import { ChildJournal } from "./child-journal.ts";
import {
  VaultChildTokens,
  type ChildTokenStore,
  type GrantRequest,
  type ParentToken,
} from "./child-token-store.ts";
import { ChildTokens, type LendSettings } from "./child-tokens.ts";
import { TokenLender } from "./token-lender.ts";

const TTL_MS = 15 * 60_000;
const SETTINGS: LendSettings = { lend: "child", policies: undefined, policiesStrict: false, ttlMs: TTL_MS };
/** A hang ends by itself. */
const TIMEOUT_MS = 240_000;
const notLendable = (reason: RegExp) => (error: unknown) =>
  error instanceof ForwardError && error.code === "token_not_lendable" && reason.test(error.message);

describe("child tokens of a real Vault", { timeout: TIMEOUT_MS }, () => {
  let vault: Vault;
  let client: VaultClient;
  let folder: TempFolder;
  let parent: ParentToken | undefined;
  /** Policies of the parent's identity. */
  let ofParent: readonly string[];
  let clock: HandClock;
  let journal: ChildJournal;
  let tokens: ChildTokens;
  let store: ChildTokenStore;
  before(async () => {
    vault = await startVault();
    client = new VaultClient({ address: vault.address, token: () => undefined });
    await vault.request("PUT", "sys/policies/acl/lender", {
      policy: 'path "auth/token/create" { capabilities = ["update"] }',
    });
    await vault.request("PUT", "sys/policies/acl/reader", {
      policy: 'path "kv/*" { capabilities = ["read"] }',
    });
  });
  after(() => vault.stop());
  beforeEach(async () => {
    folder = await tempFolder("children");
    clock = new HandClock();
    clock.jump(Date.now() - clock.now());
    parent = { token: new Secret(vault.rootToken), displayName: "root" };
    ofParent = [];
    ({ journal, tokens, store } = make());
  });
  afterEach(async () => {
    await tokens.revokeAll();
    await folder.remove();
  });
  function make(key = Buffer.alloc(32, 1)): {
    journal: ChildJournal;
    tokens: ChildTokens;
    store: ChildTokenStore;
  } {
    const children = new VaultChildTokens({ client, parent: () => parent, now: () => clock.now() });
    const written = new ChildJournal({
      path: join(folder.path, "lent"),
      key: new Secret(key),
      logger: silentLogger,
    });
    const own = (): { token: Secret; expiresAt: undefined } | undefined =>
      parent && { token: parent.token, expiresAt: undefined };
    const identityPolicies = (): readonly string[] => ofParent;
    const parts = { store: children, journal: written, own, identityPolicies, clock, logger: silentLogger };
    return { journal: written, tokens: new ChildTokens(parts), store: children };
  }
  const lookup = async (token: Secret): Promise<Record<string, unknown>> =>
    (await vault.request("POST", "auth/token/lookup", { token: token.reveal() })).body["data"] as Record<
      string,
      unknown
    >;
  const isLive = (token: Secret): Promise<boolean> => store.isLive(token);

  it("has a life that nobody can prolong, can revoke itself, and the parent's name", async () => {
    const { token, expiresAt } = await tokens.lend("dev", SETTINGS);
    const found = await lookup(token);
    assert.deepEqual(
      [found["explicit_max_ttl"], found["renewable"], found["orphan"], found["display_name"], found["type"]],
      [900, false, false, "token-root", "service"],
    );
    assert.ok(Math.abs((expiresAt ?? 0) - clock.now() - TTL_MS) < 60_000);
    // The parent is a child itself: its name does not get another prefix.
    const created = (
      await vault.request("POST", "auth/token/create", { policies: ["lender"], display_name: "me" })
    ).body;
    const auth = created["auth"] as Record<string, string>;
    parent = { token: new Secret(auth["client_token"] ?? ""), displayName: "token-me" };
    const child = await tokens.lend("other", SETTINGS);
    const shown = await lookup(child.token);
    assert.deepEqual([shown["display_name"], shown["policies"]], ["token-me", ["default", "lender"]]);
  });

  it("is narrowed by policies; other ones of the store are shown or refused", async () => {
    const userToken = await vault.createUserToken("alice", ["lender", "reader"]);
    const found = await lookup(new Secret(userToken));
    await vault.request("POST", `identity/entity/id/${String(found["entity_id"])}`, {
      policies: ["of-entity"],
    });
    parent = { token: new Secret(userToken), displayName: "userpass-alice" };
    const settings = { ...SETTINGS, policies: ["reader"] };
    // Before the first token, the identity of the parent tells.
    ofParent = (await client.lookupSelf({ token: parent.token })).identityPolicies;
    assert.deepEqual(tokens.status("dev", settings).addedPolicies, ["of-entity"]);
    for (const other of [
      SETTINGS,
      { ...settings, lend: "own" as const },
      { ...settings, policies: ofParent },
    ])
      assert.deepEqual(tokens.status("dev", other).addedPolicies, []);
    ofParent = [];
    const { token } = await tokens.lend("dev", settings);
    const child = await lookup(token);
    assert.deepEqual([child["policies"], child["entity_id"]], [["default", "reader"], found["entity_id"]]);
    assert.deepEqual(tokens.status("dev", settings).addedPolicies, ["of-entity"]);
    await assert.rejects(
      tokens.lend("strict", { ...settings, policiesStrict: true }),
      notLendable(/the store adds: of-entity/),
    );
    assert.deepEqual(tokens.status("strict", SETTINGS).tokens, []);
    assert.match(tokens.status("strict", SETTINGS).problem ?? "", /of-entity/);
    const allowed = { ...settings, policies: ["reader", "of-entity"], policiesStrict: true };
    await assert.rejects(
      tokens.lend("more", allowed),
      notLendable(/refuses a child token with these policies/),
    );
    await vault.request("POST", `identity/entity/id/${String(found["entity_id"])}`, { policies: ["reader"] });
    await tokens.lend("strict", { ...settings, policiesStrict: true });
    assert.equal(tokens.status("strict", SETTINGS).problem, undefined);
  });

  it("a token that may not create children lends nothing, and never itself", async () => {
    const batch = (await vault.request("POST", "auth/token/create", { type: "batch", policies: ["lender"] }))
      .body;
    const tokenOf = (body: Readonly<Record<string, unknown>>): Secret =>
      new Secret((body["auth"] as Record<string, string>)["client_token"] ?? "");
    parent = { token: tokenOf(batch), displayName: "token" };
    await assert.rejects(tokens.lend("dev", SETTINGS), notLendable(/kind of token/));
    parent = { token: new Secret(await vault.createUserToken("bob")), displayName: "userpass-bob" };
    await assert.rejects(tokens.lend("dev", SETTINGS), notLendable(/does not allow/));
    assert.equal(
      (await tokens.lend("dev", { ...SETTINGS, lend: "own" })).token.reveal(),
      parent.token.reveal(),
    );
    assert.deepEqual(tokens.status("dev", SETTINGS).tokens, []);
    parent = undefined;
    await assert.rejects(tokens.lend("dev", SETTINGS), notLendable(/nobody is signed in/));
  });

  it("is handed out until a third of its life is left, then replaced and revoked", async () => {
    const first = await tokens.lend("dev", SETTINGS);
    assert.equal((await tokens.lend("dev", SETTINGS)).token.reveal(), first.token.reveal());
    clock.advance((TTL_MS * 2) / 3 + 1000);
    const second = await tokens.lend("dev", SETTINGS);
    assert.notEqual(second.token.reveal(), first.token.reveal());
    assert.ok(await isLive(first.token));
    assert.equal(tokens.status("dev", SETTINGS).tokens.length, 2);
    await tokens.lend("dev", SETTINGS);
    await until(async () => !(await isLive(first.token)));
    assert.deepEqual(
      tokens.status("dev", SETTINGS).tokens.map(({ handouts, lastUsedAt }) => [handouts, lastUsedAt]),
      [[2, clock.now()]],
    );
  });

  it("one that the store no longer accepts is replaced at the next request", async () => {
    const first = await tokens.lend("dev", SETTINGS);
    await vault.request("POST", "auth/token/revoke", { token: first.token.reveal() });
    assert.ok(await isLive((await tokens.lend("dev", SETTINGS)).token));
  });

  it("concurrent requests of one borrower get one child; two borrowers get their own", async () => {
    const lent = await Promise.all(["a", "a", "a", "b"].map((owner) => tokens.lend(owner, SETTINGS)));
    assert.equal(new Set(lent.map(({ token }) => token.reveal())).size, 2);
    await tokens.revoke("a");
    assert.deepEqual(await Promise.all(lent.map(({ token }) => isLive(token))), [false, false, false, true]);
    await tokens.revokeAll();
    assert.equal(await isLive((lent[3] ?? assert.fail()).token), false);
    await assert.rejects(stat(join(folder.path, "lent")), { code: "ENOENT" });
  });

  it("one that is granted while its forward ends is revoked and not handed out", async (t) => {
    const granted: Secret[] = [];
    const original = store.grant.bind(store);
    t.mock.method(store, "grant", async (request: GrantRequest) => {
      const child = await original(request);
      granted.push(child.token);
      // The store has granted it, and its response is on the way.
      await tokens.revoke("dev");
      return child;
    });
    const concurrent = [tokens.lend("dev", SETTINGS), tokens.lend("dev", SETTINGS)];
    for (const lending of concurrent) await assert.rejects(lending, notLendable(/the forward has ended/));
    assert.equal(granted.length, 1, "the second request asks the store for nothing");
    assert.equal(await isLive(granted[0] ?? assert.fail()), false);
    assert.deepEqual(await journal.read(), []);
  });

  it("one that is checked while its forward ends is revoked and not handed out", async (t) => {
    const checked: Secret[] = [];
    const original = store.isLive.bind(store);
    t.mock.method(store, "isLive", async (token: Secret) => {
      checked.push(token);
      await tokens.revokeLeft();
      assert.ok(await original(token), "a child that is being granted is not left over");
      await tokens.revoke("dev");
      return true;
    });
    await assert.rejects(tokens.lend("dev", SETTINGS), notLendable(/the forward has ended/));
    assert.equal(await original(checked[0] ?? assert.fail()), false);
    assert.deepEqual([tokens.status("dev", SETTINGS).tokens, await journal.read()], [[], []]);
  });

  it("a reason why nothing is lent is followed until it is gone, and leaves no child", async () => {
    const lender = new TokenLender({ children: tokens, ask: undefined, clock, logger: silentLogger });
    const settings = { ...SETTINGS, policies: ["reader", "added"], ask: "never" } as const;
    const userToken = await vault.createUserToken("carol", ["lender"]);
    parent = { token: new Secret(userToken), displayName: "userpass-carol" };
    const problem = (): string => lender.status("DEV", { ...SETTINGS, ask: "never" }).problem ?? "";
    const children = async (): Promise<number> => {
      const { body } = await vault.request("LIST", "auth/token/accessors");
      return (body["data"] as { keys: string[] }).keys.length;
    };
    const others = await children();
    await assert.rejects(lender.lend("dev", settings), notLendable(/refuses/));
    assert.match(problem(), /refuses a child token with these policies/);

    // Somebody else makes another reason, then none, and the borrower asks for nothing.
    parent = undefined;
    await until(() => (clock.advance(1000), /nobody is signed in/.test(problem())), problem);
    parent = { token: new Secret(vault.rootToken), displayName: "root" };
    let changes = 0;
    const end = lender.onChange(() => changes++);
    await until(() => (clock.advance(1000), problem() === ""), problem);
    assert.equal(changes, 1);
    end();
    await until(async () => (await children()) === others);
    assert.deepEqual(
      [lender.status("dev", { ...SETTINGS, ask: "never" }).tokens, await journal.read()],
      [[], []],
    );

    // Other settings are tried now, not at the next request.
    parent = { token: new Secret(userToken), displayName: "userpass-carol" };
    await assert.rejects(lender.lend("dev", settings), notLendable(/refuses/));
    await lender.change("dev", { ...settings, policies: ["added"] });
    assert.match(problem(), /refuses/);
    await lender.change("dev", { ...settings, policies: undefined });
    assert.equal(problem(), "");
    // The end of a loan is the end of its problem.
    await assert.rejects(lender.lend("dev", settings), notLendable(/refuses/));
    await lender.revoke("dev");
    assert.equal(problem(), "");
    parent = undefined;
    await assert.rejects(lender.lend("dev", settings), notLendable(/nobody/));
    parent = { token: new Secret(vault.rootToken), displayName: "root" };
    await lender.recheck();
    assert.equal(problem(), "");
    await until(async () => (await children()) === others);
    await lender.stop();
  });

  it("a refusal of the user is shown for as long as it holds", async () => {
    const asked: string[] = [];
    const ask = (borrower: string): void => void asked.push(borrower);
    const lender = new TokenLender({ children: tokens, ask, clock, logger: silentLogger });
    const settings = { ...SETTINGS, ask: "first" } as const;
    await assert.rejects(lender.lend("dev", settings), { code: "consent_pending" });
    assert.deepEqual([asked, lender.consent("dev", false)], [["dev"], true]);
    await assert.rejects(lender.lend("dev", settings), notLendable(/has refused/));
    clock.advance(10 * 60_000 - 1);
    assert.match(lender.status("dev", { ...SETTINGS, ask: "never" }).problem ?? "", /has refused/);
    clock.advance(1);
    assert.equal(lender.status("dev", { ...SETTINGS, ask: "never" }).problem, undefined);
    await lender.stop();
  });

  it("outlives a crash only until the next start; its record is encrypted", async () => {
    const { token } = await tokens.lend("dev", SETTINGS);
    const bytes = await readFile(join(folder.path, "lent"), "latin1");
    assert.ok(!bytes.includes(token.reveal()) && !bytes.includes("dev"));
    assert.equal((await stat(join(folder.path, "lent"))).mode & 0o777, 0o600);
    assert.deepEqual(await make(Buffer.alloc(32, 2)).journal.read(), []);
    // Nobody is signed in yet when the daemon starts.
    parent = undefined;
    await make().tokens.recover();
    assert.equal(await isLive(token), false);
    await assert.rejects(stat(join(folder.path, "lent")), { code: "ENOENT" });
    await writeFile(join(folder.path, "lent"), "broken");
    await make().tokens.recover();
  });

  it("one that may not revoke itself is revoked by its accessor", async () => {
    const bare = { policies: ["reader"], no_default_policy: true };
    const auth = (await vault.request("POST", "auth/token/create", bare)).body["auth"] as Record<
      string,
      string
    >;
    const child = { token: new Secret(auth["client_token"] ?? ""), accessor: auth["accessor"] ?? "" };
    parent = undefined;
    assert.equal(await store.revoke(child), false);
    parent = { token: new Secret(vault.rootToken), displayName: "root" };
    assert.equal(await store.revoke(child), true);
    assert.equal(await store.revoke(child), true);
  });
});
