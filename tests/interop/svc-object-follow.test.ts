import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { git, repositories, startCodeHost } from "@devplat/testkit";
import { S3_SERVERS } from "../../apps/svc/src/cache/object-tier/bucket.test-kit.ts";
import { startTwoInstances, type ObjectStand, type TwoInstances } from "./svc-object-stand.ts";

for (const [serverName, startServer] of S3_SERVERS) {
  describe(`manifests of repositories in use: ${serverName}`, { timeout: 480_000 }, () => {
    let two: TwoInstances;
    let name = "";
    let path = "";
    let count = 0;
    let folders = 0;
    before(async () => {
      two = await startTwoInstances(startServer, await startCodeHost(), { grantSeconds: 30 });
    });
    beforeEach(async () => {
      name = `n${++count}`;
      two.bucket.proxy.heal();
      ({ path } = await two.codeHost.addRepository("org", name, { build: repositories.merges }));
      for (const stand of [two.a, two.b]) stand.list("org", name);
    });
    after(async () => two.stop());

    const clone = async (stand: ObjectStand): Promise<string> => {
      const to = `${name}-${folders++}`;
      const result = await stand.git(["clone", "-q", "--mirror", `${stand.url}/org/${name}`, to]);
      assert.equal(result.code, 0, result.stderr);
      return to;
    };
    const packs = async (stand: ObjectStand): Promise<string[]> => {
      const folder = join(stand.storagePath, "org", `${name}.git`, "objects", "pack");
      const files = await readdir(folder).catch(() => []);
      return files.filter((file) => file.endsWith(".pack")).toSorted();
    };
    /** A fetches a push, and its pack is in the bucket. */
    const pushedByA = async (folder: string): Promise<void> => {
      await repositories.append(path);
      await git(["-C", two.a.folder(folder), "fetch", "-q"]);
      await two.a.uploaded();
    };

    it("new packs of A reach B without a request", async () => {
      const ofA = await clone(two.a);
      await two.a.uploaded();
      await clone(two.b);
      await two.b.uploaded();
      await pushedByA(ofA);
      two.codeHost.resetCalls();
      assert.notDeepEqual(await packs(two.b), await packs(two.a));
      await two.b.follow();
      assert.deepEqual(await packs(two.b), await packs(two.a));
      assert.equal(two.codeHost.calls.length, 0);
    });

    it("a purge at A removes the data of B", async () => {
      await clone(two.a);
      await two.a.uploaded();
      await clone(two.b);
      await two.b.uploaded();
      assert.ok((await packs(two.b)).length > 0);
      await two.a.purge(name);
      await two.a.uploaded();
      await two.b.follow();
      assert.deepEqual(await packs(two.b), []);
    });

    it("a repository that was not used since the start is not asked for", async () => {
      await clone(two.a);
      await two.a.uploaded();
      const third = await two.another();
      third.list("org", name);
      try {
        two.bucket.proxy.resetCounts();
        await third.follow();
        assert.equal(two.bucket.proxy.counts.get, 0);
        await clone(third);
        await third.uploaded();
        two.bucket.proxy.resetCounts();
        await third.follow();
        assert.deepEqual([two.bucket.proxy.counts.get, two.bucket.proxy.counts.list], [1, 0]);
      } finally {
        await third.stop();
      }
    });
  });
}
