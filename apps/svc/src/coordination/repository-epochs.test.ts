import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { silentLogger } from "@devplat/base";
import { tempFolder, type TempFolder } from "@devplat/testkit";
import { repositoryId } from "../access/repository-id.ts";
import { memoryStore } from "../storage/memory.test-kit.ts";
import type { Store } from "../storage/store.ts";
import { RepositoryEpochs } from "./repository-epochs.ts";

const HOST = "https://code.example";
const WIDGETS = repositoryId("acme", "widgets");
const KEY = "code.example/acme/widgets";

describe("RepositoryEpochs", () => {
  let store: Store;
  let temporary: TempFolder;
  let folder: string;
  /** `owner/name` of each removal in the folder of each instance. */
  let removed: string[];
  beforeEach(async () => {
    store = await memoryStore();
    temporary = await tempFolder("epochs");
    folder = temporary.path;
    removed = [];
  });
  afterEach(async () => {
    await store.close();
    // The epochs of a purge may still be written there.
    await temporary.remove();
  });

  const instance = (
    change: { hostUrl?: string; storagePath?: string; purge?: () => Promise<void>; off?: boolean } = {},
  ): RepositoryEpochs =>
    new RepositoryEpochs({
      store: store.epochs,
      hostUrl: change.hostUrl ?? HOST,
      data:
        change.off === true
          ? undefined
          : {
              storagePath: change.storagePath ?? folder,
              purge: async (owner, name) => {
                removed.push(`${owner}/${name}`);
                await change.purge?.();
              },
            },
      logger: silentLogger,
    });

  it("a purge while this instance was stopped removes its data at the start", async () => {
    const first = instance();
    await first.compare();
    assert.deepEqual(removed, []);
    await instance({ off: true }).raise("ACME", "Widgets");
    const restarted = instance();
    await restarted.compare();
    assert.deepEqual(removed, ["acme/widgets"]);
    assert.equal(restarted.of(WIDGETS), await store.epochs.get(KEY));
    await instance().compare();
    assert.deepEqual(removed, ["acme/widgets"]);
  });

  it("a purge here removes the data here once, also after a restart", async () => {
    const here = instance();
    await here.compare();
    await here.raise("acme", "widgets");
    assert.deepEqual(removed, ["acme/widgets"], "before the call resolved");
    await here.settled();
    await here.compare();
    await instance().compare();
    assert.deepEqual(removed, ["acme/widgets"]);
  });

  it("data of a purge that was interrupted is removed at the next start", async () => {
    const here = instance({ purge: async () => Promise.reject(new Error("interrupted")) });
    await here.compare();
    await here.raise("acme", "widgets");
    await here.settled();
    assert.equal(here.of(WIDGETS), 0);
    await instance().compare();
    assert.deepEqual(removed, ["acme/widgets", "acme/widgets"]);
  });

  it("a lost or damaged file of epochs keeps nothing that was purged", async () => {
    await store.epochs.raise(KEY);
    await instance().compare();
    const path = join(folder, ".epochs.json");
    const good = await readFile(path, "utf8");
    for (const text of [
      "",
      "{}",
      "[]",
      "null",
      '{"epochs":null}',
      `{"epochs":{"${KEY}":"9999999999999"}}`,
      good.replace(/\d{13}/, "9999999999999"),
      undefined,
    ]) {
      removed = [];
      if (text === undefined) await rm(path);
      else await writeFile(path, text);
      await instance().compare();
      assert.deepEqual(removed, ["acme/widgets"], text ?? "no file");
      assert.equal(await readFile(path, "utf8"), good);
    }
  });

  it("a database that is behind the folder takes over its epochs", async () => {
    await instance().raise("acme", "widgets");
    const before = instance();
    await before.compare();
    const epoch = before.of(WIDGETS);
    await store.close();
    store = await memoryStore();
    removed = [];
    await instance().compare();
    assert.deepEqual(removed, []);
    assert.equal(await store.epochs.get(KEY), epoch);
    assert.ok((await store.epochs.raise(KEY)) > epoch);
  });

  it("an epoch of a manifest is adopted with all that it means, a lower one is not", async () => {
    const here = instance();
    await here.compare();
    await here.adopt(WIDGETS, 7);
    assert.deepEqual(removed, ["acme/widgets"]);
    assert.equal(here.of(WIDGETS), 7);
    assert.equal(await store.epochs.get(KEY), 7);
    await here.adopt(WIDGETS, 6);
    assert.deepEqual(removed, ["acme/widgets"]);
    await store.epochs.adopt(KEY, 10);
    await here.adopt(WIDGETS, 8);
    assert.equal(here.of(WIDGETS), 10);
  });

  it("repositories of another code host are left alone", async () => {
    await instance({ hostUrl: "https://other.example" }).raise("acme", "widgets");
    removed = [];
    await instance().compare();
    assert.deepEqual(removed, []);
    assert.equal(instance().of(WIDGETS), 0);
  });

  it("tells which repositories of this code host were purged once", async () => {
    assert.deepEqual(await instance().purged(), []);
    await instance().raise("ACME", "Widgets");
    await instance({ hostUrl: "https://other.example" }).raise("acme", "other");
    assert.deepEqual(
      (await instance().purged()).map(({ key }) => key),
      [WIDGETS.key],
    );
  });

  it("without a cache a purge still reaches the instances that have one", async () => {
    await instance({ off: true }).compare();
    await instance({ off: true }).raise("acme", "widgets");
    assert.deepEqual(removed, []);
    await instance().compare();
    assert.deepEqual(removed, ["acme/widgets"]);
  });
});
