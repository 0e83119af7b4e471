import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startVersityGateway, until } from "@devplat/testkit";
import type { BucketReader } from "./svc-bucket-reader.ts";
import { InstancesStand, PREFIX, type Instance } from "./svc-instances-stand.ts";

/** Pushes while two instances write manifests. */
const PUSHES = 6;

describe("a bucket that ignores conditions on writes", { timeout: 300_000 }, () => {
  describe("with a common Postgres", () => {
    let stand: InstancesStand;
    let reader: BucketReader;
    let instances: Instance[];
    let count = 0;
    before(async () => {
      stand = await InstancesStand.start({ bucket: startVersityGateway, conditions: false });
      reader = stand.bucketReader();
      instances = await Promise.all(["a", "b"].map(async (name) => stand.addInstance(name)));
      for (const instance of instances) await stand.ready(instance);
    });
    after(async () => {
      await reader?.close();
      await stand?.stop();
    });

    const repository = async (): Promise<{ name: string; path: string; id: string }> => {
      const name = `r${++count}`;
      const { path } = await stand.host.addRepository("acme", name, { private: true });
      return { name, path, id: await stand.list(instances[0]!.svc, name) };
    };
    /** Keys of objects in the folder of a repository. */
    const keys = async (name: string): Promise<string[]> => {
      const { entries } = await reader.store.list(`${PREFIX}/`);
      return entries.map(({ key }) => key).filter((key) => key.includes(`/acme/${name}/`));
    };

    it("instances share packs by manifests that the database names", async () => {
      const [a, b] = instances as [Instance, Instance];
      const { name, path } = await repository();
      await stand.cloneRight(a, name, path);
      await reader.hasTip("acme", name, path);
      stand.host.resetCalls();
      await stand.cloneRight(b, name, path);
      assert.equal(stand.fetches(), 0, b.svc.log().slice(-2000));
      assert.ok((await reader.check("acme", name))!.packs.length > 0);
      assert.match(a.svc.log(), /"conditions":false,"msg":"the bucket is used"/);
      const manifests = (await keys(name)).filter((key) => key.includes("manifest"));
      assert.ok(manifests.length > 0 && manifests.every((key) => /\/manifests\/\d+-[^/]+\.json$/.test(key)));
    });

    it("two instances that write at the same time lose no commit, and leave one manifest", async () => {
      const { name, path } = await repository();
      for (let push = 0; push < PUSHES; push++) {
        await stand.host.push("acme", name);
        await Promise.all(instances.map(async (instance) => stand.cloneRight(instance, name, path)));
      }
      for (const instance of instances) await stand.uploaded(instance, name);
      await reader.hasTip("acme", name, path);
      assert.ok((await reader.check("acme", name))!.generation > 1);
      await until(async () => (await keys(name)).filter((key) => key.includes("/manifests/")).length === 1);
      const row = await stand.sql(`SELECT name FROM manifest_pointers WHERE key LIKE '%/acme/${name}'`);
      assert.ok((await keys(name)).some((key) => key.endsWith(`/acme/${name}/${row}`)));
    });

    it("a purge reaches the other instance, and its manifest names nothing", async () => {
      const [a, b] = instances as [Instance, Instance];
      const { name, path, id } = await repository();
      await stand.cloneRight(a, name, path);
      await reader.hasTip("acme", name, path);
      await stand.cloneRight(b, name, path);
      await stand.call(b.svc, "POST", `/api/cached-repos/${id}/purge`);
      await until(async () => (await reader.manifest("acme", name))?.packs.length === 0);
      stand.host.resetCalls();
      await stand.cloneRight(a, name, path);
      assert.equal(stand.fetches(), 1);
    });

    it("without the database clones go on from the code host, and the manifest stays", async () => {
      const [a] = instances as [Instance, Instance];
      const { name, path } = await repository();
      await stand.cloneRight(a, name, path);
      await reader.hasTip("acme", name, path);
      const older = await reader.manifest("acme", name);
      a.relay.cut();
      await stand.host.push("acme", name);
      await stand.cloneRight(a, name, path);
      a.relay.restore();
      assert.equal((await reader.check("acme", name))?.generation, older?.generation);
      await stand.ready(a);
      // Uploads that failed are tried again.
      await reader.hasTip("acme", name, path);
      await reader.check("acme", name);
    });

    it("an instance that starts after an upgrade of the store uses the same manifests", async () => {
      const { name, path } = await repository();
      await stand.cloneRight(instances[0]!, name, path);
      await reader.hasTip("acme", name, path);
      stand.upgradeBucket();
      const late = await stand.addInstance("late");
      await stand.ready(late);
      stand.host.resetCalls();
      await stand.cloneRight(late, name, path);
      assert.equal(stand.fetches(), 0, late.svc.log().slice(-2000));
      await stand.host.push("acme", name);
      await stand.cloneRight(late, name, path);
      await reader.hasTip("acme", name, path);
      assert.ok(!(await keys(name)).some((key) => key.endsWith("/manifest.json")));
    });
  });

  it("is not used by an instance with a database of its own, which says why", async () => {
    const stand = await InstancesStand.start({
      bucket: startVersityGateway,
      database: "sqlite",
      conditions: false,
    });
    const reader = stand.bucketReader();
    try {
      const instance = await stand.addInstance("a");
      await until(() => instance.svc.log().includes("the bucket is not used"));
      assert.match(instance.svc.log(), /does not honour conditions .*database\.driver: postgres/);
      assert.match(await (await fetch(`${instance.svc.url}/readyz`)).text(), /bucket: not usable/);
      await stand.list(instance.svc);
      await stand.cloneRight(instance);
      assert.deepEqual((await reader.store.list("")).entries, []);
    } finally {
      await reader.close();
      await stand.stop();
    }
  });
});
