import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "@devplat/base";
import { CachedRepositories, type NewCachedRepository } from "./cached-repositories.ts";
import { memoryStore } from "../../storage/memory.test-kit.ts";

const FIELDS: NewCachedRepository = {
  owner: "acme",
  name: "widgets",
  enabled: true,
  timeoutSeconds: undefined,
  maxCacheSizeMb: undefined,
  seed: undefined,
  bundles: undefined,
};

describe("CachedRepositories", () => {
  it("concurrent changes without a version are all kept", async () => {
    const store = await memoryStore();
    const repositories = await CachedRepositories.open(store.cachedRepositories, systemClock);
    const { id } = await repositories.add(FIELDS);
    await Promise.all([
      repositories.change(id, { enabled: false }),
      repositories.change(id, { timeoutSeconds: 60 }),
      repositories.change(id, { maxCacheSizeMb: 5 }),
    ]);
    const { enabled, timeoutSeconds, maxCacheSizeMb, version } = repositories.get(id);
    assert.deepEqual([enabled, timeoutSeconds, maxCacheSizeMb, version], [false, 60, 5, 4]);
    assert.deepEqual(await store.cachedRepositories.list(), repositories.list());
    await store.close();
  });

  it("cache.seeds is for all records that do not say whether they have seeds", async () => {
    const store = await memoryStore();
    const repositories = await CachedRepositories.open(store.cachedRepositories, systemClock, false);
    const names = [undefined, true, false];
    for (const seed of names) await repositories.add({ ...FIELDS, name: String(seed), seed });
    const seeds = () => names.map((name) => repositories.find("acme", String(name))?.seed);
    assert.deepEqual(seeds(), [false, true, false]);
    await repositories.refresh();
    assert.deepEqual(seeds(), [false, true, false]);
    repositories.seeds = true;
    assert.deepEqual(seeds(), [true, true, false]);
    repositories.seeds = false;
    assert.deepEqual(seeds(), [false, true, false]);
    assert.deepEqual(
      names.map((seed) => repositories.seedOf({ seed })),
      [false, true, false],
    );
    const policy = repositories.find("acme", "true");
    repositories.seeds = false;
    assert.equal(repositories.find("acme", "true"), policy, "the same value makes nothing new");
    await store.close();
  });

  it("a change after one of another process keeps both, and an old version fails", async () => {
    const store = await memoryStore();
    const here = await CachedRepositories.open(store.cachedRepositories, systemClock);
    const { id } = await here.add(FIELDS);
    const there = await CachedRepositories.open(store.cachedRepositories, systemClock);
    await there.change(id, { timeoutSeconds: 60 });
    await assert.rejects(here.change(id, { enabled: false }, [1]), { code: "version_mismatch" });
    assert.equal((await here.change(id, { enabled: false })).timeoutSeconds, 60);
    await store.close();
  });

  it("changes of another instance are read, and observers are called", async () => {
    const store = await memoryStore();
    const here = await CachedRepositories.open(store.cachedRepositories, systemClock);
    const told: string[] = [];
    here.observe(
      ({ name, maxCacheSizeMb }) => void told.push(`${name} changed to ${maxCacheSizeMb}`),
      ({ name }) => void told.push(`${name} removed`),
    );
    const there = await CachedRepositories.open(store.cachedRepositories, systemClock);
    const { id } = await there.add(FIELDS);
    assert.equal(here.find("acme", "widgets"), undefined);
    await here.refresh();
    assert.notEqual(here.find("acme", "widgets"), undefined);
    await there.change(id, { maxCacheSizeMb: 5 });
    await here.refresh();
    await here.refresh();
    await there.remove(id);
    await here.refresh();
    assert.equal(here.find("acme", "widgets"), undefined);
    assert.deepEqual(told, ["widgets changed to 5", "widgets removed"]);
    await store.close();
  });

  it("a change here that finds changes of other instances calls observers for them", async () => {
    const store = await memoryStore();
    const here = await CachedRepositories.open(store.cachedRepositories, systemClock);
    const { id } = await here.add(FIELDS);
    const removed = await here.add({ ...FIELDS, name: "gadgets" });
    const told: string[] = [];
    here.observe(
      ({ name, timeoutSeconds }) => void told.push(`${name} changed to ${timeoutSeconds} s`),
      ({ name }) => void told.push(`${name} ended`),
    );
    const there = await CachedRepositories.open(store.cachedRepositories, systemClock);
    await there.change(id, { enabled: false });
    await there.remove(removed.id);
    await here.change(id, { timeoutSeconds: 60 });
    const expected = ["widgets changed to 30 s", "widgets ended", "gadgets ended", "widgets changed to 60 s"];
    assert.deepEqual(told, expected);
    await here.refresh();
    assert.deepEqual(told, expected);
    await store.close();
  });

  it("a list that was read before a change made here does not undo it", async () => {
    const store = await memoryStore();
    const repositories = await CachedRepositories.open(store.cachedRepositories, systemClock);
    const refreshing = repositories.refresh();
    await repositories.add(FIELDS);
    await refreshing;
    assert.notEqual(repositories.find("acme", "widgets"), undefined);
    await store.close();
  });

  it("finds a repository in any case of ASCII letters, without Unicode folding", async () => {
    const store = await memoryStore();
    const repositories = await CachedRepositories.open(store.cachedRepositories, systemClock);
    await repositories.add({ ...FIELDS, owner: "kernel" });
    assert.notEqual(repositories.find("KERNEL", "Widgets"), undefined);
    assert.equal(repositories.find("\u212aernel", "widgets"), undefined);
    await store.close();
  });

  it("a change that changes nothing keeps version and time", async () => {
    const store = await memoryStore();
    const repositories = await CachedRepositories.open(store.cachedRepositories, systemClock);
    const record = await repositories.add(FIELDS);
    assert.deepEqual(await repositories.change(record.id, { enabled: true }), record);
    await store.close();
  });

  it("one of two concurrent adds of a name is refused", async () => {
    const store = await memoryStore();
    const repositories = await CachedRepositories.open(store.cachedRepositories, systemClock);
    const results = await Promise.allSettled([
      repositories.add(FIELDS),
      repositories.add({ ...FIELDS, owner: "ACME" }),
    ]);
    assert.deepEqual(results.map(({ status }) => status).toSorted(), ["fulfilled", "rejected"]);
    assert.equal(repositories.all().length, 1);
    await store.close();
  });
});
