import assert from "node:assert/strict";
import { randomUUIDv7 } from "node:crypto";
import { afterEach, beforeEach, describe, it } from "node:test";
import { Secret } from "@devplat/base";
import type { CachedRepositoryRecord, Store, TokenRecord } from "./store.ts";

/** What every implementation of the store contract passes. `open` gives an empty store each time. */
export function storeContract(name: string, open: () => Promise<Store>): void {
  describe(`store contract: ${name}`, () => {
    let store: Store;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(async () => store.close());

    it("a cached repository comes back as it was written", async () => {
      const record = repository({ timeoutSeconds: 600, maxCacheSizeMb: 5, enabled: false });
      await store.cachedRepositories.insert(record);
      assert.deepEqual(await store.cachedRepositories.list(), [record]);
    });

    it("cached repositories are unique and ordered without regard to case", async () => {
      await store.cachedRepositories.insert(repository({ owner: "b", name: "z" }));
      await store.cachedRepositories.insert(repository({ owner: "B", name: "A" }));
      await store.cachedRepositories.insert(repository({ owner: "a", name: "M" }));
      const names = (await store.cachedRepositories.list()).map((each) => `${each.owner}/${each.name}`);
      assert.deepEqual(names, ["a/M", "B/A", "b/z"]);
      await assert.rejects(store.cachedRepositories.insert(repository({ owner: "A", name: "m" })), {
        code: "already_exists",
      });
    });

    it("of two updates from one version, the second gets false", async () => {
      const record = repository();
      await store.cachedRepositories.insert(record);
      const changed = { ...record, enabled: false, maxCacheSizeMb: 7, updatedAt: 9, version: 2 };
      assert.equal(await store.cachedRepositories.update(changed), true);
      assert.equal(await store.cachedRepositories.update({ ...changed, enabled: true }), false);
      assert.deepEqual(await store.cachedRepositories.list(), [changed]);
      assert.equal(await store.cachedRepositories.update({ ...repository(), version: 2 }), false);
    });

    it("a deleted repository is gone, and deleting again gives false", async () => {
      const record = repository();
      await store.cachedRepositories.insert(record);
      assert.equal(await store.cachedRepositories.delete(record.id), true);
      assert.equal(await store.cachedRepositories.delete(record.id), false);
      assert.deepEqual(await store.cachedRepositories.list(), []);
    });

    it("a login is one user in any case of letters, also when two ask at once", async () => {
      const [one, two] = await Promise.all([
        store.users.ensure("Alice", randomUUIDv7(), 1),
        store.users.ensure("alice", randomUUIDv7(), 2),
      ]);
      assert.equal(one.id, two.id);
      assert.deepEqual(await store.users.get(one.id), one);
      assert.equal(await store.users.get(randomUUIDv7()), undefined);
    });

    it("a credential is replaced, and undefined where none is stored", async () => {
      const user = await store.users.ensure("alice", randomUUIDv7(), 1);
      assert.equal(await store.users.credential(user.id), undefined);
      await store.users.putCredential(user.id, new Secret("first"), 1);
      await store.users.putCredential(user.id, new Secret("second ✓"), 2);
      assert.equal((await store.users.credential(user.id))?.reveal(), "second ✓");
      assert.equal(await store.users.credential(randomUUIDv7()), undefined);
    });

    it("a session is found by its hash until it is deleted or cleared away", async () => {
      const user = await store.users.ensure("alice", randomUUIDv7(), 1);
      const session = {
        id: randomUUIDv7(),
        kind: "session",
        tokenHash: "h1",
        tokenStart: "svcr_1",
        userId: user.id,
        role: "admin",
        createdAt: 1,
        expiresAt: 100,
      } as const;
      const other = { ...session, id: randomUUIDv7(), tokenHash: "h2", expiresAt: 300 };
      await store.sessions.insert(session);
      await store.sessions.insert(other);
      assert.deepEqual(await store.sessions.findByHash("h1"), session);
      assert.equal(await store.sessions.findByHash("none"), undefined);
      assert.equal(await store.sessions.deleteExpired(200), 1);
      assert.equal(await store.sessions.findByHash("h1"), undefined);
      assert.equal(await store.sessions.delete(other.id), true);
      assert.equal(await store.sessions.delete(other.id), false);
    });

    it("a token comes back as it was written, by hash and by id", async () => {
      const record = await token(store, { description: "ci", sessionId: "run-1", ipAllow: ["10.0.0.0/8"] });
      await store.tokens.insert(record);
      assert.deepEqual(await store.tokens.findByHash(record.tokenHash), record);
      assert.deepEqual(await store.tokens.get(record.id), record);
      assert.equal(await store.tokens.findByHash("none"), undefined);
    });

    it("tokens are listed newest first, by user or all, without revoked ones", async () => {
      const [one, two] = [await token(store, { createdAt: 1 }), await token(store, { createdAt: 2 })];
      const foreign = await token(store, { createdAt: 3 }, "bob");
      for (const each of [one, two, foreign]) await store.tokens.insert(each);
      const ids = async (user: string | undefined): Promise<string[]> =>
        (await store.tokens.list(user)).map(({ id }) => id);
      assert.deepEqual(await ids(one.userId), [two.id, one.id]);
      assert.deepEqual(await ids(undefined), [foreign.id, two.id, one.id]);
      assert.equal(await store.tokens.revoke(two.id, 50), true);
      assert.equal(await store.tokens.revoke(two.id, 60), false);
      assert.equal((await store.tokens.get(two.id))?.revokedAt, 50);
      assert.deepEqual(await ids(one.userId), [one.id]);
    });

    it("uses are added up, and those of unknown tokens are dropped", async () => {
      const record = await token(store);
      await store.tokens.insert(record);
      const use = { id: record.id, uses: 2, lastUsedAt: 5, lastIp: "10.0.0.1" };
      await store.tokens.recordUses([use, { ...use, id: randomUUIDv7() }]);
      await store.tokens.recordUses([{ ...use, uses: 3, lastUsedAt: 6 }]);
      await store.tokens.recordUses([]);
      assert.deepEqual(await store.tokens.get(record.id), {
        ...record,
        useCount: 5,
        lastUsedAt: 6,
        lastIp: "10.0.0.1",
      });
    });

    it("ended tokens are cleared away, those without expiry stay", async () => {
      const expired = await token(store, { expiresAt: 10 });
      const endless = await token(store, { expiresAt: undefined });
      const revoked = await token(store, { expiresAt: undefined });
      for (const each of [expired, endless, revoked]) await store.tokens.insert(each);
      await store.tokens.revoke(revoked.id, 15);
      assert.equal(await store.tokens.deleteEnded(20), 2);
      assert.notEqual(await store.tokens.get(endless.id), undefined);
    });

    it("answers a ping", async () => store.ping());
  });
}

function repository(change: Partial<CachedRepositoryRecord> = {}): CachedRepositoryRecord {
  return {
    id: randomUUIDv7(),
    owner: "acme",
    name: "Widgets",
    enabled: true,
    timeoutSeconds: undefined,
    maxCacheSizeMb: undefined,
    createdAt: 1_700_000_000_000,
    updatedAt: 1_700_000_000_000,
    version: 1,
    ...change,
  };
}

async function token(store: Store, change: Partial<TokenRecord> = {}, login = "alice"): Promise<TokenRecord> {
  const id = randomUUIDv7();
  const user = await store.users.ensure(login, randomUUIDv7(), 1);
  return {
    id,
    type: "proxy",
    tokenHash: `hash of ${id}`,
    tokenStart: "svcx_abcdefg",
    userId: user.id,
    repositories: ["acme/Widgets"],
    scopes: { contents: "read", metadata: "read" },
    description: undefined,
    sessionId: undefined,
    ipAllow: [],
    createdAt: 1_700_000_000_000,
    expiresAt: 1_700_000_060_000,
    revokedAt: undefined,
    lastUsedAt: undefined,
    lastIp: undefined,
    useCount: 0,
    ...change,
  };
}
