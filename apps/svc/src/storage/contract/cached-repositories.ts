import assert from "node:assert/strict";
import { it } from "node:test";
import type { Store } from "../store.ts";
import { comparable, repositoryRecord } from "./records.ts";

export function cachedRepositoryCases(store: () => Store): void {
  it("a cached repository comes back as it was written", async () => {
    const { cachedRepositories } = store();
    const settings = { timeoutSeconds: 600, maxCacheSizeMb: 5, seed: true, bundles: true };
    const record = repositoryRecord({ ...settings, enabled: false });
    await cachedRepositories.insert(record);
    assert.deepEqual(await cachedRepositories.list(), [record]);
  });

  it("cached repositories are unique and ordered without regard to case", async () => {
    const { cachedRepositories } = store();
    await cachedRepositories.insert(repositoryRecord({ owner: "b", name: "z" }));
    await cachedRepositories.insert(repositoryRecord({ owner: "B", name: "A" }));
    await cachedRepositories.insert(repositoryRecord({ owner: "a", name: "M" }));
    const names = (await cachedRepositories.list()).map((each) => `${each.owner}/${each.name}`);
    assert.deepEqual(names, ["a/M", "B/A", "b/z"]);
    await assert.rejects(cachedRepositories.insert(repositoryRecord({ owner: "A", name: "m" })), {
      code: "already_exists",
    });
  });

  it("names are ordered by code point, with the owner first", async () => {
    const { cachedRepositories } = store();
    const names = ["a/b-c", "a/b.c", "a/b_c", "a/bc", "a-b/a", "a.b/a", "ab/a", "a/B0"];
    for (const each of names) {
      const [owner = "", name = ""] = each.split("/");
      await cachedRepositories.insert(repositoryRecord({ owner, name }));
    }
    const listed = (await cachedRepositories.list()).map((each) => `${each.owner}/${each.name}`);
    const byKey = names.toSorted((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1));
    assert.deepEqual(listed, byKey);
  });

  it("of two updates from one version, the second gets false", async () => {
    const { cachedRepositories } = store();
    const record = repositoryRecord();
    await cachedRepositories.insert(record);
    const settings = { enabled: false, maxCacheSizeMb: 7, seed: false, bundles: true };
    const changed = { ...record, ...settings, updatedAt: 9, version: 2 };
    assert.equal(await cachedRepositories.update(changed), true);
    assert.equal(await cachedRepositories.update({ ...changed, enabled: true }), false);
    assert.deepEqual(comparable(await cachedRepositories.list()), comparable([changed]));
    assert.equal(await cachedRepositories.update({ ...repositoryRecord(), version: 2 }), false);
  });

  it("of updates from one version that race, exactly one gets true", async () => {
    const { cachedRepositories } = store();
    const record = repositoryRecord();
    await cachedRepositories.insert(record);
    const won = await Promise.all(
      [1, 2, 3, 4].map(async (maxCacheSizeMb) =>
        cachedRepositories.update({ ...record, maxCacheSizeMb, version: 2 }),
      ),
    );
    assert.equal(won.filter(Boolean).length, 1);
  });

  it("of inserts of one name that race, exactly one succeeds", async () => {
    const { cachedRepositories } = store();
    const results = await Promise.allSettled(
      [1, 2, 3, 4].map(async () => cachedRepositories.insert(repositoryRecord())),
    );
    assert.equal(results.filter(({ status }) => status === "fulfilled").length, 1);
    assert.equal((await cachedRepositories.list()).length, 1);
  });

  it("a deleted repository is gone, deleting again gives false, and its name is free", async () => {
    const { cachedRepositories } = store();
    const record = repositoryRecord();
    await cachedRepositories.insert(record);
    assert.equal(await cachedRepositories.delete(record.id), true);
    assert.equal(await cachedRepositories.delete(record.id), false);
    assert.deepEqual(await cachedRepositories.list(), []);
    await cachedRepositories.insert(repositoryRecord());
  });
}
