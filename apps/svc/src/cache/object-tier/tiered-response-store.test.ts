import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { tempFolder, until, type S3Fault } from "@devplat/testkit";
import { repositoryKey } from "../../coordination/repository-key.ts";
import { repositoryId, type RepositoryId } from "../../access/repository-id.ts";
import { memoryStore } from "../../storage/memory.test-kit.ts";
import { StoredDataDamaged } from "../responses/block-sums.ts";
import { ResponseFolders } from "../responses/response-folders.ts";
import { responseStoreSuite } from "../responses/response-store.suite.ts";
import type { ResponseStore, StoredResponse } from "../responses/response-store.ts";
import { framedPack } from "../responses/references/reference.test-kit.ts";
import { S3_SERVERS, startTestBucket, type TestBucket } from "./bucket.test-kit.ts";
import { HOST_URL } from "./manifest/manifest.test-kit.ts";
import { RESPONSE_JOB } from "./responses/response-upload.ts";
import {
  openTestTier,
  putResponse,
  readResponse,
  testPacks,
  type TestTier,
  type TestTierOptions,
} from "./tiered.test-kit.ts";

const KEY = "a".repeat(64);
const OTHER_KEY = "b".repeat(64);
const MEGABYTE = 2 ** 20;
const HOUR_MS = 3_600_000;

/** Each test has repositories of its own, because the bucket is shared. */
let number = 0;
const nextId = () => repositoryId("org", `name-${++number}`);

for (const [serverName, startServer] of S3_SERVERS) {
  describe(`tiered responses on ${serverName}`, () => {
    let bucket: TestBucket;
    before(async () => {
      bucket = await startTestBucket(startServer);
    });
    after(async () => bucket.stop());

    let folders: Awaited<ReturnType<typeof tempFolder>>[] = [];
    let tiers: TestTier[] = [];
    beforeEach(() => {
      bucket.proxy.heal();
      bucket.proxy.resetCounts();
    });
    afterEach(async () => {
      bucket.proxy.heal();
      for (const tier of tiers) await tier.stop();
      for (const folder of folders) await folder.remove();
      [tiers, folders] = [[], []];
    });
    const instance = async (
      options: Partial<TestTierOptions> = {},
      settings: { readonly timeoutMs?: number } = {},
    ): Promise<TestTier & { readonly path: string }> => {
      let { path } = options;
      if (path === undefined) {
        const folder = await tempFolder("svc-tiered");
        folders.push(folder);
        ({ path } = folder);
      }
      const store = bucket.client({ partBytes: 5 * MEGABYTE, ...settings });
      const database = options.database ?? (await memoryStore());
      const tier = openTestTier({ ...options, path, store, database });
      tiers.push(tier);
      return { ...tier, path };
    };
    const opened = async (
      tier: TestTier,
      id: ReturnType<typeof nextId>,
      key = KEY,
    ): Promise<StoredResponse> => {
      const response = await tier.responses.open(id, key);
      assert.ok(response !== undefined && response !== "failed");
      return response;
    };
    /** An instance that has uploaded a response. */
    const uploaded = async (id: ReturnType<typeof nextId>, content: Buffer, key = KEY) => {
      const tier = await instance();
      await tier.start();
      await putResponse(tier.responses, id, key, content);
      await (await opened(tier, id, key)).close();
      await tier.queue.drain(60_000);
      assert.equal(tier.queue.figures().jobs, 0);
      return tier;
    };

    /** Faults of the third read of an instance, which is that of the object. */
    const faultOfObject = (fault: S3Fault, times?: number): void => {
      bucket.proxy.inject(["get"], { delayMs: 0 }, 2);
      bucket.proxy.inject(["get"], fault, times);
    };

    for (const size of [1, 1000, MEGABYTE, MEGABYTE + 1, 3 * MEGABYTE + 5, 12 * MEGABYTE + 77]) {
      it(`what one instance has used twice, another one serves: ${size} bytes`, async () => {
        const id = nextId();
        const content = randomBytes(size);
        await uploaded(id, content);
        const other = await instance({ writer: "w2" });
        const response = await opened(other, id);
        assert.equal(response.size, size);
        assert.equal(response.source, "object");
        assert.ok((await readResponse(response)).equals(content));
        await other.responses.settled();
        bucket.proxy.resetCounts();
        const local = await opened(other, id);
        assert.equal(local.source, undefined);
        assert.ok((await readResponse(local)).equals(content));
        assert.equal(
          Object.values(bucket.proxy.counts).reduce((a, b) => a + b),
          0,
          "a local hit sends nothing",
        );
      });
    }

    it("a response is uploaded at its second use, and only then", async () => {
      const id = nextId();
      const tier = await instance();
      await tier.start();
      await putResponse(tier.responses, id, KEY, randomBytes(1000));
      assert.equal(tier.queue.figures().jobs, 0);
      tier.reused.add(OTHER_KEY);
      await putResponse(tier.responses, id, OTHER_KEY, randomBytes(1000));
      assert.ok(tier.queue.has({ kind: RESPONSE_JOB, id, subject: OTHER_KEY }), "it was made twice");
      await (await opened(tier, id)).close();
      await tier.queue.drain(60_000);
      const manifest = await tier.manifest(id);
      assert.deepEqual(manifest?.responses.map(({ key }) => key).toSorted(), [KEY, OTHER_KEY]);
    });

    it("a miss in the bucket costs one request for the next seconds", async () => {
      const id = nextId();
      const tier = await instance();
      for (const key of [KEY, OTHER_KEY, KEY]) assert.equal(await tier.responses.open(id, key), undefined);
      assert.deepEqual({ ...bucket.proxy.counts, get: 1 }, bucket.proxy.counts);
      assert.equal(
        Object.values(bucket.proxy.counts).reduce((a, b) => a + b),
        1,
      );
    });

    it("a cold instance needs three requests one after another for its first byte", async () => {
      const id = nextId();
      await uploaded(id, randomBytes(3 * MEGABYTE));
      const other = await instance();
      bucket.proxy.resetCounts();
      const response = await opened(other, id);
      await readResponse(response);
      assert.equal(bucket.proxy.counts.get, 3, "manifest, list of slices, object");
      assert.equal(bucket.proxy.counts.list, 0);
    });

    it("concurrent requests share one download, and each gets all bytes", async () => {
      const id = nextId();
      const content = randomBytes(6 * MEGABYTE + 3);
      await uploaded(id, content);
      const other = await instance();
      bucket.proxy.resetCounts();
      const read = async (delay: number): Promise<Buffer> => {
        for (let turn = 0; turn < delay; turn++) await new Promise(setImmediate);
        return readResponse(await opened(other, id));
      };
      const results = await Promise.all(Array.from({ length: 20 }, async (_, at) => read(at * 10)));
      for (const result of results) assert.ok(result.equals(content));
      assert.equal(bucket.proxy.counts.get, 3);
    });

    it("a reader that leaves does not end the download of the others", async () => {
      const id = nextId();
      const content = randomBytes(6 * MEGABYTE);
      await uploaded(id, content);
      const other = await instance();
      const [one, two] = [await opened(other, id), await opened(other, id)];
      await one.close();
      assert.ok((await readResponse(two)).equals(content));
    });

    it("the download ends when all have left early, and the next one begins again", async () => {
      const id = nextId();
      const content = randomBytes(8 * MEGABYTE);
      await uploaded(id, content);
      const other = await instance();
      faultOfObject({ stallAfterBytes: 2 * MEGABYTE });
      const response = await opened(other, id);
      await response.close();
      await other.responses.settled();
      assert.deepEqual(await other.local.list(id), []);
      bucket.proxy.heal();
      assert.ok((await readResponse(await opened(other, id))).equals(content));
    });

    it("damage in the middle ends the response; the next try is a miss, and others stay", async () => {
      const id = nextId();
      const content = randomBytes(4 * MEGABYTE);
      const first = await uploaded(id, content);
      await putResponse(first.responses, id, OTHER_KEY, randomBytes(10));
      await (await opened(first, id, OTHER_KEY)).close();
      await first.queue.drain(60_000);
      const other = await instance();
      faultOfObject({ corruptAt: 3 * MEGABYTE - 5 }, 1);
      // The second try begins with the bad slice.
      bucket.proxy.inject(["get"], { corruptAt: MEGABYTE - 5 }, 1);
      const response = await opened(other, id);
      await assert.rejects(readResponse(response), StoredDataDamaged);
      await other.responses.settled();
      bucket.proxy.heal();
      await until(async () => (await other.manifest(id))?.responses.length === 1);
      assert.deepEqual(await other.local.list(id), []);
      assert.equal(await other.responses.open(id, KEY), undefined);
      assert.ok(
        (await readResponse(await opened(first, id))).equals(content),
        "the local one of another is good",
      );
    });

    it("a transfer that is cut goes on where it was", async () => {
      const id = nextId();
      const content = randomBytes(4 * MEGABYTE);
      await uploaded(id, content);
      bucket.proxy.resetCounts();
      const other = await instance();
      faultOfObject({ cutAfterBytes: 2 * MEGABYTE + 9 }, 1);
      assert.ok((await readResponse(await opened(other, id))).equals(content));
      assert.equal(bucket.proxy.counts.get, 4);
    });

    it("an object that is gone or swapped is not served, and its entry goes", async () => {
      const id = nextId();
      const contents = [randomBytes(5000), randomBytes(5000)];
      const first = await uploaded(id, contents[0]!);
      await putResponse(first.responses, id, OTHER_KEY, contents[1]!);
      await (await opened(first, id, OTHER_KEY)).close();
      await first.queue.drain(60_000);
      const store = bucket.client();
      const { entries } = await store.list("cache/v1/");
      const objects = entries.filter(({ key }) => key.includes(`${id.name}/responses/`));
      assert.equal(objects.length, 2);
      const swapped = objects.find(({ key }) => key.includes(KEY))!;
      const gone = objects.find(({ key }) => key.includes(OTHER_KEY))!;
      await store.put(swapped.key, contents[1]!);
      await store.delete(gone.key);
      const other = await instance();
      for (const key of [KEY, OTHER_KEY]) assert.equal(await other.responses.open(id, key), undefined);
      await until(async () => (await other.manifest(id))?.responses.length === 0);
    });

    it("a response of another repository or code host is not served", async () => {
      const id = nextId();
      await uploaded(id, randomBytes(100));
      const other = await instance({ hostUrl: "https://other.example" });
      assert.equal(await other.responses.open(id, KEY), undefined);
      const same = await instance();
      assert.equal(await same.responses.open(nextId(), KEY), undefined);
      assert.equal(await same.responses.open(id, OTHER_KEY), undefined);
    });

    for (const [title, remove] of [
      ["a purge", async (tier: TestTier, id: RepositoryId) => tier.purge(id)],
      [
        "a reset of a replaced repository",
        async (tier: TestTier, id: RepositoryId) => tier.responses.removeAll(id),
      ],
    ] as const)
      it(`${title} ends downloads, and no instance finds the response again`, async () => {
        const id = nextId();
        const content = randomBytes(6 * MEGABYTE);
        await uploaded(id, content);
        const other = await instance();
        await other.start();
        faultOfObject({ stallAfterBytes: 3 * MEGABYTE }, 1);
        const response = await opened(other, id);
        const reading = assert.rejects(readResponse(response), StoredDataDamaged);
        await remove(other, id);
        await reading;
        bucket.proxy.heal();
        assert.equal(await other.responses.open(id, KEY), undefined);
        await other.queue.drain(60_000);
        const manifest = await other.manifest(id);
        assert.deepEqual(manifest?.responses, []);
        assert.ok(manifest.epoch > 0);
        assert.equal(await (await instance()).responses.open(id, KEY), undefined);
        await putResponse(other.responses, id, KEY, content);
        await (await opened(other, id)).close();
        await other.queue.drain(60_000);
        assert.ok((await readResponse(await opened(await instance(), id))).equals(content));
      });

    it("a purge counts in the bucket although another database has given a higher epoch", async () => {
      const id = nextId();
      const first = await uploaded(id, randomBytes(100));
      // As with a clock an hour ahead.
      await first.database.epochs.adopt(repositoryKey(HOST_URL, id), Date.now() + HOUR_MS);
      await first.purge(id);
      await first.queue.drain(60_000);
      await putResponse(first.responses, id, KEY, randomBytes(200));
      await (await opened(first, id)).close();
      await first.queue.drain(60_000);
      assert.equal((await first.manifest(id))?.responses.length, 1);
      // It has not seen the manifest.
      const other = await instance();
      await other.start();
      await other.purge(id);
      await other.queue.drain(60_000);
      assert.deepEqual((await other.manifest(id))?.responses, []);
      assert.equal(await (await instance()).responses.open(id, KEY), undefined);
      await first.manifest(id);
      assert.equal(await first.responses.open(id, KEY), undefined, "it has read the manifest");
    });

    it("a purge while the bucket is away counts here, and later there", async () => {
      const id = nextId();
      await uploaded(id, randomBytes(100));
      const other = await instance({}, { timeoutMs: 500 });
      await other.start();
      await (await opened(other, id)).close();
      await other.responses.settled();
      await bucket.proxy.goAway();
      await other.purge(id);
      await other.stop();
      await bucket.proxy.comeBack();
      const later = await instance({ path: other.path, database: other.database });
      bucket.proxy.inject(["put"], { refuse: true });
      await later.start();
      assert.equal(await later.responses.open(id, KEY), undefined);
      bucket.proxy.heal();
      await later.queue.drain(60_000);
      await until(async () => (await later.manifest(id))?.responses.length === 0);
      assert.equal(await (await instance()).responses.open(id, KEY), undefined);
    });

    it("eviction of the local file leaves the bucket, which gives it back", async () => {
      const id = nextId();
      const content = randomBytes(2 * MEGABYTE);
      const tier = await uploaded(id, content);
      assert.equal(await tier.responses.remove(id, KEY), true);
      assert.ok((await readResponse(await opened(tier, id))).equals(content));
    });

    it("a damaged local file is replaced by the good one of the bucket", async () => {
      const id = nextId();
      const content = randomBytes(2 * MEGABYTE);
      const tier = await uploaded(id, content);
      const handle = await open(join(new ResponseFolders(tier.path, HOST_URL).path(id), KEY), "r+");
      await handle.write(Buffer.from([1, 2, 3, 4]), 0, 4, 100);
      await handle.close();
      assert.ok((await readResponse(await opened(await instance({ path: tier.path }), id))).equals(content));
    });

    it("a damaged local response is not uploaded", async () => {
      const id = nextId();
      const tier = await instance();
      await putResponse(tier.responses, id, KEY, randomBytes(2 * MEGABYTE));
      await (await opened(tier, id)).close();
      const handle = await open(join(new ResponseFolders(tier.path, HOST_URL).path(id), KEY), "r+");
      await handle.write(Buffer.from([1, 2, 3, 4]), 0, 4, MEGABYTE + 100);
      await handle.close();
      await tier.start();
      await tier.queue.drain(60_000);
      assert.deepEqual(tier.queue.figures().jobs, 0);
      assert.equal(await tier.manifest(id), undefined);
    });

    it("a response that is a reference to a pack is uploaded whole", async () => {
      const id = nextId();
      const { response: content, pack, name } = framedPack(randomBytes(2 * MEGABYTE));
      const tier = await instance();
      await putResponse(tier.responses, id, KEY, content);
      await testPacks.put(tier.path, name, pack);
      assert.ok(await tier.responses.refer(id, KEY, "sha1"));
      tier.queue.add({ kind: RESPONSE_JOB, id, subject: KEY, bytes: content.length });
      await tier.start();
      await tier.queue.drain(60_000);
      const [facts] = await tier.local.list(id);
      assert.ok(facts!.fileBytes < 100_000, "the upload is not a use of it");
      assert.ok((await readResponse(await opened(await instance(), id))).equals(content));
    });

    it("keeps the responses in the bucket within the limit of the repository", async () => {
      const id = nextId();
      const tier = await instance({ maxCacheSizeMb: 3 });
      await tier.start();
      const keys = ["1", "2", "3", "4"].map((text) => text.repeat(64));
      for (const key of keys) {
        await putResponse(tier.responses, id, key, randomBytes(MEGABYTE));
        await (await opened(tier, id, key)).close();
        await tier.queue.drain(60_000);
      }
      const manifest = await tier.manifest(id);
      assert.deepEqual(
        manifest?.responses.map(({ key }) => key),
        keys.slice(1),
      );
      assert.ok(manifest.tombstones.some(({ name }) => name.includes(keys[0]!)));
      assert.equal((await tier.local.list(id)).length, 4, "local files have their own limit");
    });

    for (const [title, fault] of [
      ["refuses connections", { refuse: true }],
      ["is slow", { hang: true }],
      ["asks to slow down", { status: 503, code: "SlowDown" }],
      ["fails", { status: 500, code: "InternalError" }],
      ["is full", { status: 507, code: "XMinioStorageFull" }],
      ["refuses the credentials", { status: 403, code: "ExpiredToken" }],
      ["sends another page", { response: { status: 200, body: "<html></html>" } }],
    ] as const) {
      it(`works from the local tier while the bucket ${title}, and uploads later`, async () => {
        const id = nextId();
        const content = randomBytes(2 * MEGABYTE);
        const tier = await instance({ firstByteMs: 300 }, { timeoutMs: 300 });
        await tier.start();
        bucket.proxy.inject("all", fault);
        assert.equal(await tier.responses.open(id, KEY), undefined);
        await putResponse(tier.responses, id, KEY, content);
        assert.ok((await readResponse(await opened(tier, id))).equals(content));
        assert.ok(tier.queue.has({ kind: RESPONSE_JOB, id, subject: KEY }));
        bucket.proxy.heal();
        await until(() => tier.queue.figures().jobs === 0);
        assert.ok((await readResponse(await opened(await instance(), id))).equals(content));
      });
    }

    it("the bucket names an object only when it is complete", async () => {
      const id = nextId();
      const tier = await instance({}, { timeoutMs: 300 });
      await putResponse(tier.responses, id, KEY, randomBytes(6 * MEGABYTE));
      await (await opened(tier, id)).close();
      bucket.proxy.inject(["complete"], { status: 500, code: "InternalError" });
      await tier.start();
      await until(() => bucket.proxy.counts.complete >= 1);
      assert.equal(await tier.manifest(id), undefined);
      bucket.proxy.heal();
      await until(() => tier.queue.figures().jobs === 0);
      assert.equal((await tier.manifest(id))?.responses.length, 1);
    });

    it("uses are recorded rarely, and together", async () => {
      const id = nextId();
      const tier = await uploaded(id, randomBytes(10));
      await (await opened(tier, id)).close();
      bucket.proxy.resetCounts();
      await tier.uses.flush();
      assert.equal(bucket.proxy.counts.put, 0, "the upload was a moment ago");
      const later = Date.now() + 600_000;
      await tier.bucket.recordUses(id, new Map([[KEY, later]]));
      assert.equal((await tier.manifest(id))?.responses[0]?.usedAt, later);
    });
  });
}

describe("the suite of response stores over two tiers", () => {
  let bucket: TestBucket;
  before(async () => {
    bucket = await startTestBucket(S3_SERVERS[0]![1]);
  });
  after(async () => bucket.stop());
  responseStoreSuite("local files and a bucket", async () => {
    const database = await memoryStore();
    const folder = await tempFolder("svc-tiered-suite");
    const store = bucket.client();
    // Each test has a code host of its own, because the bucket is shared.
    const own = `https://${createHash("sha256").update(folder.path).digest("hex")}.example`;
    const tiers: TestTier[] = [];
    const reopen = (hostUrl = own): ResponseStore => {
      const tier = openTestTier({ path: folder.path, store, hostUrl, database });
      tiers.push(tier);
      return tier.responses;
    };
    return {
      store: reopen(),
      reopen,
      damage: async (id, key, position) => {
        const path = new ResponseFolders(folder.path, own).path(id);
        const handle = await open(join(path, key), "r+");
        const { atimeMs, mtimeMs } = await handle.stat();
        await handle.write(Buffer.from([255]), 0, 1, position);
        await handle.utimes(atimeMs / 1000, mtimeMs / 1000);
        await handle.close();
      },
      putPack: async (name, bytes) => testPacks.put(folder.path, name, bytes),
      removePack: async (name) => testPacks.remove(folder.path, name),
      end: async () => {
        for (const tier of tiers) await tier.stop();
        await folder.remove();
      },
    };
  });
});
