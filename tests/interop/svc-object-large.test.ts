import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, describe, it } from "node:test";
import {
  git,
  gitEnvironment,
  repositories,
  run,
  startCodeHost,
  startSvc,
  tempFolder,
  until,
  type CodeHost,
  type Svc,
  type SvcOptions,
  type TempFolder,
} from "@devplat/testkit";
import {
  S3_SERVERS,
  startTestBucket,
  type TestBucket,
} from "../../apps/svc/src/cache/object-tier/bucket.test-kit.ts";

const HOST_TOKEN = "ghp_plantedHostToken";
/** Clones at the same time. */
const CLONES = 50;
/** Blobs of 1 MB: four parts of an upload. */
const BLOBS = 30;

interface BucketFigures {
  readonly packs: number;
  readonly waiting: number;
}

for (const [serverName, startServer] of S3_SERVERS) {
  describe(`large data in a bucket: ${serverName}`, { timeout: 600_000 }, () => {
    let host: CodeHost;
    let bucket: TestBucket;
    let folder: TempFolder;
    let count = 0;

    before(async () => {
      [host, bucket, folder] = await Promise.all([
        startCodeHost(),
        startTestBucket(startServer),
        tempFolder("svc-object-large"),
      ]);
      host.addUser("alice", HOST_TOKEN);
    });
    after(async () => {
      await bucket?.stop();
      await Promise.all([host?.stop(), folder?.remove()]);
    });

    const start = async (options: SvcOptions = {}): Promise<Svc> => {
      const { server, proxy } = bucket;
      const svc = await startSvc({
        codeHost: host,
        ...options,
        env: {
          SVC_ENCRYPTION_KEY: "5a".repeat(32),
          SVC_DEV_HOST_TOKEN: HOST_TOKEN,
          SVC_CACHE_OBJECT_BUCKET: server.bucket,
          SVC_CACHE_OBJECT_REGION: server.region,
          SVC_CACHE_OBJECT_ENDPOINT: proxy.endpoint,
          SVC_CACHE_OBJECT_ACCESS_KEY_ID: server.accessKeyId,
          SVC_CACHE_OBJECT_SECRET_ACCESS_KEY: server.secretAccessKey,
          SVC_CACHE_OBJECT_UPLOAD_PARALLEL: "1",
          SVC_CACHE_OBJECT_TIMEOUT_SECONDS: "20",
          SVC_CACHE_STORAGE_PATH: "large",
          ...options.env,
        },
      });
      await until(async () => (await (await fetch(`${svc.url}/readyz`)).text()) === "ready\n");
      return svc;
    };
    const clone = async (svc: Svc, name: string): Promise<string> => {
      const to = `${folder.path}/${++count}`;
      const args = ["clone", "-q", "--bare", `${svc.url}/org/${name}`, to];
      const { code, stderr } = await run("git", args, { env: gitEnvironment() });
      assert.equal(code, 0, stderr);
      return to;
    };
    const figures = async (svc: Svc, name: string): Promise<BucketFigures> => {
      const headers = { authorization: `Bearer ${await svc.signIn()}` };
      const listed = (await (await fetch(`${svc.url}/api/cached-repos`, { headers })).json()) as {
        readonly name: string;
        readonly stats: { readonly bucket: BucketFigures };
      }[];
      const found = listed.find((each) => each.name === name);
      assert.ok(found !== undefined);
      return found.stats.bucket;
    };
    const uploaded = async (svc: Svc, name: string): Promise<void> => {
      await until(async () => {
        const { packs, waiting } = await figures(svc, name);
        return packs > 0 && waiting === 0;
      });
    };
    const fetches = (): number => host.calls.filter(({ command }) => command === "fetch").length;

    it("kill -9 in the middle of a large upload: it is not used, and is repeated", async () => {
      const name = "killed";
      const dataDir = `${folder.path}/data-killed`;
      const { path } = await host.addRepository("org", name, {
        build: (dir) => repositories.bigBlobs(dir, { blobs: BLOBS, bytes: 2 ** 20 }),
      });
      const head = await git(["-C", path, "rev-parse", "HEAD"]);
      const { proxy } = bucket;
      let a = await start({ dataDir });
      await a.addCachedRepository("org", name);
      for (let kills = 0; kills < 3; kills++) {
        proxy.resetCounts();
        const heal = proxy.inject(["part"], { delayMs: 500 });
        if (kills === 0) await clone(a, name);
        await until(() => proxy.counts.part >= 1);
        await sleep(Math.random() * 500);
        a.kill();
        assert.equal(proxy.counts.complete, 0, "the kill came in the middle");
        heal();
        const b = await start();
        try {
          await b.addCachedRepository("org", name);
          assert.equal((await figures(b, name)).packs, 0, "no manifest names a part of an upload");
        } finally {
          await b.stop();
        }
        if (kills < 2) proxy.inject(["part"], { delayMs: 500 });
        a = await start({ dataDir });
      }
      try {
        proxy.heal();
        await uploaded(a, name);
        const b = await start();
        try {
          await b.addCachedRepository("org", name);
          host.resetCalls();
          const cloned = await clone(b, name);
          assert.equal(await git(["-C", cloned, "rev-parse", "HEAD"]), head);
          await git(["-C", cloned, "fsck", "--full", "--strict"]);
          assert.equal(fetches(), 0);
        } finally {
          await b.stop();
        }
      } finally {
        await a.stop();
      }
    });

    it(`${CLONES} concurrent clones of an instance with an empty disk share one transfer`, async () => {
      const name = "many";
      const { path } = await host.addRepository("org", name, {
        build: (dir) => repositories.bigBlobs(dir, { blobs: 4, bytes: 2 ** 20 }),
      });
      const head = await git(["-C", path, "rev-parse", "HEAD"]);
      const { proxy } = bucket;
      const a = await start();
      const b = await start();
      try {
        for (const svc of [a, b]) await svc.addCachedRepository("org", name);
        // Uploads one after another, over a slow store, hold up nobody.
        const heal = proxy.inject(["put", "part"], { delayMs: 100 });
        await Promise.all(Array.from({ length: 10 }, async () => clone(a, name)));
        await uploaded(a, name);
        heal();
        host.resetCalls();
        proxy.resetCounts();
        proxy.inject(["get"], { delayMs: 50 });
        const cloned = await Promise.all(Array.from({ length: CLONES }, async () => clone(b, name)));
        for (const each of cloned) assert.equal(await git(["-C", each, "rev-parse", "HEAD"]), head);
        assert.equal(fetches(), 0);
        // Manifest, response or pack with its indexes, and their slices.
        assert.ok(proxy.counts.get < CLONES, `${proxy.counts.get} reads`);
      } finally {
        proxy.heal();
        await Promise.all([a.stop(), b.stop()]);
      }
    });
  });
}
