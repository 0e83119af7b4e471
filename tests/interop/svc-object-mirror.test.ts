import assert from "node:assert/strict";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { git, repositories, run, startCodeHost, until } from "@devplat/testkit";
import { S3_SERVERS } from "../../apps/svc/src/cache/object-tier/bucket.test-kit.ts";
import { contentOf } from "./svc-git-stand.ts";
import { startTwoInstances, type ObjectStand, type TwoInstances } from "./svc-object-stand.ts";

for (const [serverName, startServer] of S3_SERVERS) {
  describe(`mirrors over a bucket: ${serverName}`, { timeout: 480_000 }, () => {
    let two: TwoInstances;
    let name = "";
    let path = "";
    let count = 0;
    let folders = 0;
    before(async () => {
      two = await startTwoInstances(startServer, await startCodeHost(), {
        grantSeconds: 30,
        timeoutMs: 2000,
      });
    });
    beforeEach(async () => {
      name = `m${++count}`;
      two.bucket.proxy.heal();
      ({ path } = await two.codeHost.addRepository("org", name, { build: repositories.merges }));
      for (const stand of [two.a, two.b]) stand.list("org", name);
    });
    after(async () => two.stop());

    const fetches = (): number => two.a.upstream("fetch");
    const inFolder = async (stand: ObjectStand, args: readonly string[]): Promise<void> => {
      const result = await stand.git(args);
      assert.equal(result.code, 0, result.stderr);
    };
    /** Clones with stock git. @returns the name of the folder */
    const clone = async (stand: ObjectStand, ...args: string[]): Promise<string> => {
      const to = `${name}-${folders++}`;
      await inFolder(stand, ["clone", "-q", ...args, `${stand.url}/org/${name}`, to]);
      return to;
    };
    const assertSame = async (stand: ObjectStand, folder: string): Promise<void> => {
      assert.equal(await contentOf(stand.folder(folder)), await contentOf(path));
      const fsck = await run("git", ["-C", stand.folder(folder), "fsck", "--full", "--strict"]);
      assert.equal(fsck.code, 0, fsck.stderr);
    };
    const mirrorOf = ({ storagePath }: ObjectStand): string => join(storagePath, "org", `${name}.git`);
    const assertClean = async (stand: ObjectStand): Promise<void> => {
      const fsck = await run("git", ["-C", mirrorOf(stand), "fsck", "--full", "--strict", "--no-dangling"]);
      assert.equal(`${fsck.code} ${fsck.stderr}`.replaceAll(/notice:.*\n/g, ""), "0 ");
    };
    const packs = async (stand: ObjectStand): Promise<string[]> =>
      (await readdir(join(mirrorOf(stand), "objects", "pack")))
        .filter((file) => file.endsWith(".pack"))
        .map((file) => file.slice(0, -".pack".length))
        .toSorted();
    const named = async (): Promise<string[]> =>
      ((await two.a.manifest(name))?.packs ?? []).map(({ pack }) => pack).toSorted();
    /** A has a mirror, and its packs are in the bucket. */
    const filledByA = async (): Promise<void> => {
      await clone(two.a, "--mirror");
      await two.a.uploaded();
      await until(async () => (await named()).length > 0);
      two.codeHost.resetCalls();
    };
    const push = async (): Promise<string> => {
      await repositories.append(path);
      return await git(["-C", path, "rev-parse", "refs/heads/main"]);
    };

    it("an instance with an empty disk serves clones and fetches without the code host", async () => {
      const earlier = await clone(two.a, "--mirror");
      await two.a.uploaded();
      await push();
      await inFolder(two.a, ["-C", earlier, "fetch", "-q"]);
      await two.a.uploaded();
      await until(async () => (await named()).length === 2);
      two.codeHost.resetCalls();
      const source = async (label: string): Promise<number> =>
        two.b.metric(`svc_cache_bytes_total{source="${label}"}`);
      const [object, pack] = [await source("object"), await source("pack")];
      const old = await clone(two.b, "--depth=1");
      // Made from packs that were read from the bucket for it. The next one is made from packs that are here.
      assert.ok((await source("object")) > object);
      assert.equal(await source("pack"), pack);
      assert.equal((await git(["-C", two.b.folder(old), "rev-list", "--count", "HEAD"])).trim(), "1");
      const whole = await clone(two.b, "--mirror");
      await assertSame(two.b, whole);
      assert.ok((await source("pack")) > pack);
      const partial = await clone(two.b, "--filter=blob:none", "--no-checkout");
      await git(["-C", two.b.folder(partial), "rev-parse", "HEAD"]);
      assert.equal(fetches(), 0);
      assert.deepEqual(await packs(two.b), await packs(two.a));
      await assertClean(two.b);
      // The next push reaches B by the bucket.
      const tip = await push();
      await inFolder(two.a, ["-C", earlier, "fetch", "-q"]);
      assert.equal(fetches(), 1);
      await two.a.uploaded();
      await until(async () => (await named()).length === 3);
      await new Promise((resolve) => setTimeout(resolve, 1000));
      await inFolder(two.b, ["-C", whole, "fetch", "-q"]);
      assert.equal(await git(["-C", two.b.folder(whole), "rev-parse", "refs/heads/main"]), tip);
      assert.equal(fetches(), 1);
      await assertSame(two.b, whole);
    });

    it("packs that A merged replace those of B, and both stay fresh", async () => {
      const ofA = await clone(two.a, "--mirror");
      await two.a.uploaded();
      const ofB = await clone(two.b, "--mirror");
      for (let at = 0; at < 8; at++) {
        await push();
        await inFolder(two.a, ["-C", ofA, "fetch", "-q"]);
        await two.a.cache.settled();
      }
      await two.a.uploaded();
      await until(async () => (await named()).length < 8);
      await push();
      await inFolder(two.b, ["-C", ofB, "fetch", "-q"]);
      await two.b.uploaded();
      await inFolder(two.a, ["-C", ofA, "fetch", "-q"]);
      for (const [stand, folder] of [[two.a, ofA] as const, [two.b, ofB] as const]) {
        await assertSame(stand, folder);
        await assertClean(stand);
      }
      await two.b.uploaded();
      assert.deepEqual(await packs(two.b), await named());
      assert.ok((await packs(two.b)).length < 8);
    });

    it("faults of the bucket leave clones as they are: the code host answers", async () => {
      await filledByA();
      const { proxy } = two.bucket;
      const faults = [
        { corruptAt: 40 },
        { cutAfterBytes: 20 },
        { status: 500, code: "InternalError" },
        { stallAfterBytes: 20 },
      ] as const;
      for (const fault of faults) {
        const another = await two.another({ storagePath: join(two.a.folder("."), `b${folders++}`) });
        another.list("org", name);
        const heal = proxy.inject(["get"], fault);
        const folder = await clone(another, "--mirror");
        heal();
        await assertSame(another, folder);
        await another.cache.settled();
        await another.stop();
      }
      assert.equal(fetches(), faults.length);
      // The bucket is away while A is filled and merges packs.
      await proxy.goAway();
      const ofA = await clone(two.a, "--mirror");
      await push();
      await inFolder(two.a, ["-C", ofA, "fetch", "-q"]);
      await assertSame(two.a, ofA);
      await proxy.comeBack();
    });

    it("a local mirror that is lost comes back from the bucket", async () => {
      await filledByA();
      const third = await two.another({ storagePath: join(two.a.folder("."), `c${folders++}`) });
      third.list("org", name);
      try {
        await assertSame(third, await clone(third, "--mirror"));
        assert.equal(fetches(), 0);
        await rm(mirrorOf(third), { recursive: true });
        await assertSame(third, await clone(third, "--mirror", "--no-tags"));
        assert.equal(fetches(), 0);
      } finally {
        await third.stop();
      }
    });
  });
}
