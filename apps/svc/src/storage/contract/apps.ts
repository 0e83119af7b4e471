import assert from "node:assert/strict";
import { randomUUIDv7 } from "node:crypto";
import { it } from "node:test";
import { Secret } from "@devplat/base";
import type { Store } from "../store.ts";
import { appRecord, comparable } from "./records.ts";

export function appCases(store: () => Store): void {
  it("an app comes back as it was written, its secrets too", async () => {
    const { apps } = store();
    const record = appRecord({
      ownerLogin: "acme",
      clientId: "Iv1.0",
      webhookSecret: new Secret("hook"),
      isDefault: true,
      source: "manifest",
    });
    await apps.insert(record);
    assert.deepEqual(comparable(await apps.get(record.id)), comparable(record));
    assert.deepEqual(comparable(await apps.list()), [comparable(record)]);
    assert.equal(await apps.get(randomUUIDv7()), undefined);
  });

  it("an app is registered once under its id at the code host", async () => {
    const { apps } = store();
    await apps.insert(appRecord());
    await assert.rejects(apps.insert(appRecord({ name: "another" })), { code: "already_exists" });
    assert.equal((await apps.list()).length, 1);
  });

  it("apps are listed by name", async () => {
    const { apps } = store();
    for (const name of ["b", "c", "a"]) await apps.insert(appRecord({ name, appId: name }));
    assert.deepEqual(
      (await apps.list()).map(({ name }) => name),
      ["a", "b", "c"],
    );
  });

  it("of two updates of an app from one version, the second gets false", async () => {
    const { apps } = store();
    const record = appRecord();
    await apps.insert(record);
    const changed = {
      ...record,
      name: "new",
      slug: "new-slug",
      privateKey: new Secret("new key"),
      webhookSecret: new Secret("new hook"),
      updatedAt: 9,
      version: 2,
    };
    assert.equal(await apps.update(changed), true);
    assert.equal(await apps.update({ ...changed, name: "late" }), false);
    assert.deepEqual(comparable(await apps.get(record.id)), comparable(changed));
    assert.equal(await apps.update(appRecord({ version: 2 })), false);
  });

  it("a new default app takes that from the one before", async () => {
    const { apps } = store();
    const one = appRecord({ appId: "1", name: "one", isDefault: true });
    const two = appRecord({ appId: "2", name: "two" });
    await apps.insert(one);
    await apps.insert(two);
    assert.equal(await apps.update({ ...two, isDefault: true, version: 2 }), true);
    const defaults = async (): Promise<string[]> =>
      (await apps.list()).flatMap(({ name, isDefault }) => (isDefault ? name : []));
    assert.deepEqual(await defaults(), ["two"]);
    assert.equal((await apps.get(one.id))?.version, 2);
    await apps.insert(appRecord({ appId: "3", name: "three", isDefault: true }));
    assert.deepEqual(await defaults(), ["three"]);
  });

  it("a deleted app is gone, and its id at the code host is free", async () => {
    const { apps } = store();
    const record = appRecord();
    await apps.insert(record);
    assert.equal(await apps.delete(record.id), true);
    assert.equal(await apps.delete(record.id), false);
    assert.equal(await apps.get(record.id), undefined);
    await apps.insert(appRecord());
  });
}
