import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import {
  git,
  repositories,
  run,
  startCodeHost,
  until,
  type S3Fault,
  type S3RequestKind,
  type S3Server,
} from "@devplat/testkit";
import { contentOf } from "./svc-git-stand.ts";
import { startTwoInstances, type ObjectStand, type TwoInstances } from "./svc-object-stand.ts";

const WRITES: readonly S3RequestKind[] = ["put", "create", "part", "complete", "delete"];
/** Pushes, each of which becomes a pack. So many are merged. */
const PUSHES = 8;
/** Milliseconds to the first byte of a read. */
const TIMEOUT_MS = 500;

/** Faults of the store, and the requests that have them. */
export const STORE_FAULTS: readonly (readonly [
  title: string,
  kinds: readonly S3RequestKind[] | "all",
  fault: S3Fault,
  every?: number,
])[] = [
  ["is slow", "all", { delayMs: 60_000 }],
  ["asks for fewer requests", "all", { status: 503, code: "SlowDown" }],
  ["fails", "all", { status: 500, code: "InternalError" }],
  ["fails every third request", "all", { status: 500, code: "InternalError" }, 3],
  ["refuses connections", "all", { refuse: true }],
  ["cuts what it sends", ["get"], { cutAfterBytes: 10 }],
  ["sends wrong bytes", ["get"], { corruptAt: 40 }],
  ["loses responses to writes", WRITES, { loseResponse: true }],
  ["gets other bytes than were sent", ["put", "part"], { corruptRequestAt: 40 }],
  ["is full", WRITES, { status: 507, code: "XMinioStorageFull" }],
  ["is read-only", WRITES, { status: 403, code: "AccessDenied" }],
  ["refuses the credentials", "all", { status: 403, code: "ExpiredToken" }],
  ["lost the bucket", "all", { status: 404, code: "NoSuchBucket" }],
];

/** Tests the life of a repository while the store has each of these faults. */
export function describeStoreFaults(
  serverName: string,
  startServer: () => Promise<S3Server>,
  faults: typeof STORE_FAULTS,
): void {
  describe(`faults of the store in the life of a repository: ${serverName}`, { timeout: 900_000 }, () => {
    let two: TwoInstances;
    let name = "";
    let path = "";
    let count = 0;
    let folders = 0;
    before(async () => {
      two = await startTwoInstances(startServer, await startCodeHost(), {
        grantSeconds: 30,
        timeoutMs: TIMEOUT_MS,
      });
    });
    beforeEach(async () => {
      name = `f${++count}`;
      two.bucket.proxy.heal();
      ({ path } = await two.codeHost.addRepository("org", name, { build: repositories.merges }));
      for (const stand of [two.a, two.b]) stand.list("org", name);
    });
    after(async () => two.stop());

    const inFolder = async (stand: ObjectStand, args: readonly string[]): Promise<void> => {
      const result = await stand.git(args);
      assert.equal(result.code, 0, result.stderr);
    };
    const clone = async (stand: ObjectStand): Promise<string> => {
      const to = `${name}-${folders++}`;
      await inFolder(stand, ["clone", "-q", "--mirror", `${stand.url}/org/${name}`, to]);
      return to;
    };
    const assertSame = async (stand: ObjectStand, folder: string): Promise<void> => {
      assert.equal(await contentOf(stand.folder(folder)), await contentOf(path));
      const fsck = await run("git", ["-C", stand.folder(folder), "fsck", "--full", "--strict"]);
      assert.equal(fsck.code, 0, fsck.stderr);
    };
    const mirrorOf = ({ storagePath }: ObjectStand): string => join(storagePath, "org", `${name}.git`);
    const packs = async (stand: ObjectStand): Promise<number> =>
      (await readdir(join(mirrorOf(stand), "objects", "pack"))).filter((file) => file.endsWith(".pack"))
        .length;
    const assertClean = async (stand: ObjectStand): Promise<void> => {
      const fsck = await run("git", ["-C", mirrorOf(stand), "fsck", "--full", "--strict", "--no-dangling"]);
      assert.equal(`${fsck.code} ${fsck.stderr}`.replaceAll(/notice:.*\n/g, ""), "0 ");
    };
    const push = async (): Promise<string> => {
      await repositories.append(path);
      return await git(["-C", path, "rev-parse", "refs/heads/main"]);
    };
    /** Each object that the manifest names is there, with its length. */
    const assertComplete = async (): Promise<void> => {
      const manifest = await two.b.manifest(name);
      assert.ok(manifest !== undefined);
      const { entries } = await two.b.store.list("");
      const objects = [
        ...manifest.responses.map(({ object }) => object),
        ...manifest.packs.flatMap(({ files }) => Object.values(files)),
      ];
      for (const { name: object, length } of objects) {
        const found = entries.find(({ key }) => key.endsWith(`/${name}/${object}`));
        assert.equal(found?.length, length, object);
      }
    };

    it("git is told of damage in the middle of a response, and the next try is right", async () => {
      const large = `large-${name}`;
      const { path: source } = await two.codeHost.addRepository("org", large, {
        build: (dir) => repositories.bigBlobs(dir, { blobs: 4, bytes: 2 ** 20 }),
      });
      for (const stand of [two.a, two.b]) stand.list("org", large);
      const cloned = async (stand: ObjectStand) => {
        const to = `${large}-${folders++}`;
        const { code, stderr } = await stand.git([
          "clone",
          "-q",
          "--mirror",
          `${stand.url}/org/${large}`,
          to,
        ]);
        return { to, code, stderr };
      };
      for (let at = 0; at < 3; at++) {
        assert.equal((await cloned(two.a)).code, 0);
        await two.a.cache.settled();
      }
      await two.a.uploaded();
      const object = (await two.a.manifest(large))?.responses[0]?.object.name;
      assert.ok(object !== undefined);
      const { entries } = await two.a.store.list("");
      const key = entries.find((each) => each.key.endsWith(object))?.key ?? "";
      const found = await two.a.store.get(key);
      assert.ok(found.modified);
      const bytes = Buffer.concat((await found.body.toArray()) as Buffer[]);
      const at = Math.floor(bytes.length * 0.6);
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      await two.a.store.put(key, bytes);
      const broken = await cloned(two.b);
      assert.notEqual(broken.code, 0);
      assert.match(broken.stderr, /stored data of this repository cannot be read; try again/);
      const right = await cloned(two.b);
      assert.equal(right.code, 0, right.stderr);
      assert.equal(await contentOf(two.b.folder(right.to)), await contentOf(source));
    });

    for (const [title, kinds, fault, every] of faults) {
      it(`fills, pushes, repacks, evictions and purges while the store ${title}`, async () => {
        const storagePath = join(two.a.folder("."), `c-${name}`);
        await clone(two.a);
        await two.a.uploaded();
        const c = await two.another({ storagePath });
        c.list("org", name);
        try {
          two.bucket.proxy.inject(kinds, fault, undefined, every);
          // A fill, behind the response of the code host or after a broken transfer from the bucket.
          const folder = await clone(c);
          await assertSame(c, folder);
          await c.cache.settled();
          // Pushes: no stored response or shared pack may hide them. Packs are merged in between.
          for (let at = 0; at < PUSHES; at++) {
            const tip = await push();
            await inFolder(c, ["-C", folder, "fetch", "-q"]);
            assert.equal(await git(["-C", c.folder(folder), "rev-parse", "refs/heads/main"]), tip);
            await c.cache.settled();
          }
          await until(async () => (await packs(c)) < PUSHES);
          await assertClean(c);
          await assertSame(c, folder);
          // Evictions, of local responses and in the bucket.
          c.list("org", name, { maxCacheSizeMb: 0 });
          await c.cache.cleanup();
          await assertSame(c, await clone(c));
          c.list("org", name);
          // A purge: the next clone comes from the code host, and has the newest push.
          await c.purge(name);
          await push();
          await assertSame(c, await clone(c));
          await c.cache.settled();
        } finally {
          await c.stop();
          two.bucket.proxy.heal();
        }
        // Another start, on the same folder and with a store that works: what waits is uploaded.
        const again = await two.another({ storagePath });
        again.list("org", name);
        try {
          await assertSame(again, await clone(again));
          await again.uploaded();
          await assertClean(again);
          await assertComplete();
          two.codeHost.resetCalls();
          await assertSame(two.b, await clone(two.b));
          await assertClean(two.b);
          assert.equal(two.b.upstream("fetch"), 0, "the data in the bucket is complete");
        } finally {
          await again.stop();
        }
      });
    }
  });
}
