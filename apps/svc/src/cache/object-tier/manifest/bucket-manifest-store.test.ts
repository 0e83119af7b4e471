import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ObjectStoreError, type ObjectStore } from "@devplat/object-store";
import { repositoryId } from "../../../access/repository-id.ts";
import { S3_SERVERS, startTestBucket, type TestBucket } from "../bucket.test-kit.ts";
import { ManifestKeys } from "./manifest-keys.ts";
import { EpochChanged, FenceLost, ForeignManifest } from "./manifest-store.ts";
import { KEY, OTHER_KEY, adding, openManifests, someResponse } from "./manifest.test-kit.ts";

for (const [name, start] of S3_SERVERS) {
  describe(`BucketManifestStore on ${name}`, () => {
    let bucket: TestBucket;
    let store: ObjectStore;
    let count = 0;
    let id = repositoryId("ada", "x");
    before(async () => {
      bucket = await startTestBucket(start);
      store = bucket.client();
    });
    after(async () => bucket.stop());
    beforeEach(() => {
      bucket.proxy.heal();
      bucket.proxy.resetCounts();
      id = repositoryId("ada", `repository-${count++}`);
    });
    const requests = (): number => Object.values(bucket.proxy.counts).reduce((sum, each) => sum + each, 0);
    const keysOf = (manifest: { readonly responses: readonly { readonly key: string }[] } | undefined) =>
      manifest?.responses.map(({ key }) => key).toSorted();

    it("writes a manifest that another instance reads, and asks once", async () => {
      const one = openManifests(store);
      const other = openManifests(store, { writer: "w2" });
      const response = someResponse();
      assert.equal(await one.manifests.current(id), undefined);
      const written = await one.manifests.update(id, { epoch: 0 }, adding(response));
      assert.deepEqual([written?.generation, written?.epoch, written?.writtenBy], [1, 0, "w1"]);
      assert.ok(Math.abs((written?.writtenAt ?? 0) - Date.now()) < 60_000);
      assert.deepEqual(await other.manifests.current(id), written);
      assert.deepEqual(other.manifests.known(id), written);
    });

    it("sends nothing for a known manifest, nor for one that was asked for within maxAge", async () => {
      const { manifests } = openManifests(store);
      await manifests.update(id, { epoch: 0 }, adding(someResponse()));
      assert.deepEqual({ ...bucket.proxy.counts, get: 0, put: 0 }, { ...noRequests, get: 0, put: 0 });
      assert.deepEqual([bucket.proxy.counts.get, bucket.proxy.counts.put], [1, 1]);
      bucket.proxy.resetCounts();
      for (let times = 0; times < 50; times++) {
        manifests.known(id);
        await manifests.current(id, { maxAgeMs: 60_000 });
      }
      assert.equal(requests(), 0);
      await Promise.all(Array.from({ length: 20 }, () => manifests.current(id)));
      assert.equal(requests(), 1);
      // A known manifest is replaced without another read.
      bucket.proxy.resetCounts();
      await manifests.update(id, { epoch: 0 }, adding(someResponse()));
      assert.deepEqual([bucket.proxy.counts.get, bucket.proxy.counts.put], [0, 1]);
    });

    it("asks once for a repository without manifest, and remembers that within maxAge", async () => {
      const { manifests } = openManifests(store);
      assert.equal(await manifests.current(id, { maxAgeMs: 60_000 }), undefined);
      assert.equal(await manifests.current(id, { maxAgeMs: 60_000 }), undefined);
      assert.equal(requests(), 1);
    });

    it("writes changes that wait together, and keeps those of all instances", async () => {
      const instances = ["w1", "w2", "w3"].map((writer) => openManifests(store, { writer }));
      const responses = Array.from({ length: 30 }, () => someResponse());
      await Promise.all(
        responses.map(async (response, index) =>
          instances[index % 3]?.manifests.update(id, { epoch: 0 }, adding(response)),
        ),
      );
      const manifest = await instances[0]?.manifests.current(id);
      assert.deepEqual(keysOf(manifest), responses.map(({ key }) => key).toSorted());
      assert.ok((manifest?.generation ?? 99) <= 12, `${manifest?.generation} generations for 30 changes`);
    });

    it("fails the one change of a group that cannot be written", async () => {
      const { manifests } = openManifests(store);
      const good = someResponse();
      const results = await Promise.allSettled([
        manifests.update(id, { epoch: 0 }, adding(good)),
        manifests.update(id, { epoch: 0 }, adding({ ...someResponse(), key: "not a key" })),
        manifests.update(id, { epoch: 0 }, () => {
          throw new Error("as the test wants it");
        }),
        manifests.update(id, { epoch: 0 }, () => undefined),
      ]);
      assert.deepEqual(
        results.map(({ status }) => status),
        ["fulfilled", "rejected", "rejected", "fulfilled"],
      );
      assert.deepEqual(keysOf(await manifests.current(id)), [good.key]);
    });

    it("finds out whether a write whose response was lost was done", async () => {
      const { manifests } = openManifests(store);
      bucket.proxy.inject(["put"], { loseResponse: true }, 1);
      const first = await manifests.update(id, { epoch: 0 }, adding(someResponse()));
      assert.equal(first?.generation, 1);
      bucket.proxy.inject(["put"], { loseResponse: true }, 1);
      const second = await manifests.update(id, { epoch: 0 }, adding(someResponse()));
      assert.deepEqual([second?.generation, second?.responses.length], [2, 2]);
      bucket.proxy.inject(["put"], { loseResponse: true }, 1);
      bucket.proxy.inject(["get"], { refuse: true });
      const third = someResponse();
      const impatient = openManifests(bucket.client({ timeoutMs: 200 })).manifests;
      bucket.proxy.heal();
      await impatient.current(id);
      bucket.proxy.inject(["put"], { loseResponse: true }, 1);
      bucket.proxy.inject(["get"], { refuse: true });
      await assert.rejects(impatient.update(id, { epoch: 0 }, adding(third)), (error: unknown) => {
        return error instanceof ObjectStoreError && error.outcomeUnknown;
      });
      bucket.proxy.heal();
      // The same change again finds itself.
      assert.deepEqual((await impatient.update(id, { epoch: 0 }, adding(third)))?.responses.length, 3);
    });

    it("makes tombstones of objects that are no longer named", async () => {
      const { manifests } = openManifests(store);
      const [one, two] = [someResponse(), someResponse()];
      await manifests.update(id, { epoch: 0 }, adding(one));
      await manifests.update(id, { epoch: 0 }, adding(two));
      const removed = await manifests.update(id, { epoch: 0 }, (content) => ({
        ...content,
        responses: content.responses.filter(({ key }) => key !== one.key),
      }));
      assert.deepEqual(
        removed?.tombstones.map(({ name: dead, generation }) => [dead, generation]),
        [[one.object.name, 3]],
      );
      const swept = await manifests.update(id, { epoch: 0 }, (content) => ({ ...content, tombstones: [] }));
      assert.deepEqual(swept?.tombstones, []);
    });

    it("refuses a write of an old epoch or an old holder of the lease", async () => {
      const one = openManifests(store);
      const other = openManifests(store, { writer: "w2" });
      const first = someResponse();
      await one.manifests.update(id, { epoch: 0, fence: 5 }, adding(first));
      await assert.rejects(
        other.manifests.update(id, { epoch: 0, fence: 4 }, adding(someResponse())),
        FenceLost,
      );
      assert.equal((await other.manifests.update(id, { epoch: 0 }, adding(someResponse())))?.fence, 5);
      await other.manifests.reset(id, 3);
      await assert.rejects(one.manifests.update(id, { epoch: 0 }, adding(someResponse())), EpochChanged);
      const empty = await one.manifests.current(id);
      assert.deepEqual([empty?.epoch, empty?.responses, empty?.fence], [3, [], 5]);
      assert.ok(empty?.tombstones.some(({ name: dead }) => dead === first.object.name));
      assert.equal(one.epochs.of(id), 3);
      // A second reset to the same epoch writes nothing.
      const { put } = bucket.proxy.counts;
      await one.manifests.reset(id, 3);
      assert.equal(bucket.proxy.counts.put, put);
    });

    it("does not use an old manifest that is put back, and heals it", async () => {
      const one = openManifests(store);
      await one.manifests.update(id, { epoch: 0 }, adding(someResponse()));
      const old = await read(store, one.names.manifest(id));
      const known = await one.manifests.update(id, { epoch: 0 }, adding(someResponse()));
      await store.put(one.names.manifest(id), old);
      // The epoch is the same, and this instance knows better.
      assert.deepEqual(await one.manifests.current(id), known);
      const healed = await one.manifests.update(id, { epoch: 0 }, adding(someResponse()));
      assert.deepEqual([healed?.generation, healed?.responses.length], [3, 3]);
      // After a purge it is absent, and its objects are dead.
      await one.manifests.reset(id, 1);
      await store.put(one.names.manifest(id), old);
      assert.equal(await one.manifests.current(id), undefined);
      assert.deepEqual(one.refused, ["old_generation", "old_epoch"]);
      // Asked again, it is not counted again.
      await one.manifests.current(id);
      assert.equal(one.refused.length, 2);
      const fresh = await one.manifests.update(id, { epoch: 1 }, adding(someResponse()));
      assert.deepEqual([fresh?.epoch, fresh?.responses.length], [1, 1]);
      assert.equal(fresh?.tombstones.length, 3);
    });

    it("treats forged, swapped and foreign bytes as absent, and replaces them", async () => {
      const one = openManifests(store);
      const victim = repositoryId("ada", `victim-${count++}`);
      await one.manifests.update(victim, { epoch: 0 }, adding(someResponse()));
      const swapped = await read(store, one.names.manifest(victim));
      const forged = Buffer.from(swapped.toString().replace('"generation":1', '"generation":9'));
      for (const [bytes, reason] of [
        [swapped, "forged"],
        [forged, "forged"],
        [Buffer.from("{}"), "malformed"],
        [Buffer.alloc(0), "malformed"],
      ] as const) {
        await store.put(one.names.manifest(id), bytes);
        assert.equal(await one.manifests.current(id), undefined);
        assert.equal(one.refused.at(-1), reason);
      }
      assert.equal(one.refusals.counts().get("malformed"), 1);
      const written = await one.manifests.update(id, { epoch: 0 }, adding(someResponse()));
      assert.equal(written?.responses.length, 1);
      assert.equal(one.refusals.counts().size, 0);
    });

    it("reads with the previous key, writes with the new one, and names an unknown one", async () => {
      const old = openManifests(store);
      await old.manifests.update(id, { epoch: 0 }, adding(someResponse()));
      const rotated = openManifests(store, { keys: new ManifestKeys(OTHER_KEY, [KEY]) });
      const lost = openManifests(store, { keys: new ManifestKeys(OTHER_KEY) });
      assert.equal(await lost.manifests.current(id), undefined);
      assert.deepEqual(
        [lost.refused, lost.refusals.otherKeys()],
        [["other_key"], [new ManifestKeys(KEY).currentId]],
      );
      await assert.rejects(lost.manifests.update(id, { epoch: 0 }, adding(someResponse())), ForeignManifest);
      assert.equal((await rotated.manifests.current(id))?.responses.length, 1);
      await rotated.manifests.update(id, { epoch: 0 }, adding(someResponse()));
      assert.equal((await lost.manifests.current(id))?.responses.length, 2);
      assert.deepEqual(lost.refusals.otherKeys(), []);
      // Purging is meant to remove everything.
      await old.manifests.reset(id, 1);
      assert.equal((await old.manifests.current(id))?.epoch, 1);
    });

    it("ends the wait of a caller that left, and serves the others", async () => {
      const { manifests } = openManifests(store);
      const left = new AbortController();
      bucket.proxy.inject(["get"], { delayMs: 200 }, 1);
      const reads = [manifests.current(id, { signal: left.signal }), manifests.current(id)];
      left.abort(new Error("left"));
      const results = await Promise.allSettled(reads);
      assert.deepEqual(
        results.map(({ status }) => status),
        ["rejected", "fulfilled"],
      );
      assert.equal(requests(), 1);
    });

    it("rejects within the time limit if the bucket is slow or away", async () => {
      const { manifests } = openManifests(bucket.client({ timeoutMs: 300 }));
      bucket.proxy.inject("all", { hang: true });
      await assert.rejects(manifests.current(id), ObjectStoreError);
      bucket.proxy.heal();
      bucket.proxy.inject("all", { refuse: true });
      await assert.rejects(manifests.update(id, { epoch: 0 }, adding(someResponse())), ObjectStoreError);
      bucket.proxy.heal();
      await sleep(0);
      assert.equal((await manifests.update(id, { epoch: 0 }, adding(someResponse())))?.generation, 1);
    });
  });
}

const noRequests = {
  get: 0,
  head: 0,
  put: 0,
  delete: 0,
  list: 0,
  uploads: 0,
  create: 0,
  part: 0,
  complete: 0,
  abort: 0,
};

async function read(store: ObjectStore, key: string): Promise<Buffer> {
  const found = await store.get(key);
  assert.ok(found.modified);
  return Buffer.concat((await found.body.toArray()) as Buffer[]);
}
