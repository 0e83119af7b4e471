import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { ObjectStoreError, type ByteRange, type ObjectStore } from "@devplat/object-store";
import { tempFolder, type S3Fault, type TempFolder } from "@devplat/testkit";
import { repositoryId } from "../../../access/repository-id.ts";
import { S3_SERVERS, startTestBucket, type TestBucket } from "../bucket.test-kit.ts";
import { SLICE_BYTES, type StoredObject } from "../manifest/manifest.ts";
import { ObjectNames } from "../object-names.ts";
import { CheckedObjects } from "./checked-objects.ts";
import { CheckedUploads } from "./checked-uploads.ts";

const id = repositoryId("ada", "engine");
const names = new ObjectNames({ prefix: "cache", hostUrl: "https://code.example", hideKey: undefined });
const BYTES = randomBytes(3 * SLICE_BYTES + 17);

for (const [name, start] of S3_SERVERS) {
  describe(`CheckedObjects on ${name}`, () => {
    let bucket: TestBucket;
    let folder: TempFolder;
    let store: ObjectStore;
    let object: StoredObject;
    let small: StoredObject;
    before(async () => {
      bucket = await startTestBucket(start);
      folder = await tempFolder("checked");
      store = bucket.client();
      object = await upload("packs/large.pack", BYTES);
      small = await upload("responses/small", BYTES.subarray(0, 1000));
    });
    after(async () => {
      await bucket.stop();
      await folder.remove();
    });
    beforeEach(() => {
      bucket.proxy.heal();
      bucket.proxy.resetCounts();
    });

    async function upload(as: string, bytes: Buffer): Promise<StoredObject> {
      const path = join(folder.path, "file");
      await writeFile(path, bytes);
      return await new CheckedUploads(store, names).upload(id, as, path);
    }
    async function read(of: StoredObject, range?: ByteRange): Promise<Buffer> {
      const pieces: Buffer[] = [];
      const reader = new CheckedObjects(store, names);
      for await (const piece of reader.read(id, of, range === undefined ? {} : { range })) pieces.push(piece);
      return Buffer.concat(pieces);
    }
    const assertRejects = async (work: Promise<unknown>, code: string): Promise<void> =>
      assert.rejects(work, (error: unknown) => error instanceof ObjectStoreError && error.code === code);

    it("gives what was uploaded, with one request for the list and one for the bytes", async () => {
      assert.ok((await read(object)).equals(BYTES));
      assert.equal(bucket.proxy.counts.get, 2);
      assert.ok((await read(small)).equals(BYTES.subarray(0, 1000)));
      assert.equal(bucket.proxy.counts.get, 3);
      const empty = await upload("responses/empty", Buffer.alloc(0));
      assert.equal((await read(empty)).length, 0);
    });

    it("gives any range, and reads a list once for all of them", async () => {
      const reader = new CheckedObjects(store, names);
      const ranges = [
        [0, 1],
        [SLICE_BYTES - 1, 2],
        [SLICE_BYTES, SLICE_BYTES],
        [5, BYTES.length - 10],
        [BYTES.length - 1, 1],
        [7, 0],
      ] as const;
      for (const [first, length] of ranges) {
        const pieces: Buffer[] = [];
        for await (const piece of reader.read(id, object, { range: { first, length } })) pieces.push(piece);
        assert.ok(Buffer.concat(pieces).equals(BYTES.subarray(first, first + length)), `${first} ${length}`);
      }
      assert.equal(bucket.proxy.counts.get, 1 + ranges.length - 1);
      for (const [first, length] of [
        [-1, 2],
        [BYTES.length, 1],
        [0, BYTES.length + 1],
      ] as const)
        await assert.rejects(read(object, { first, length }), RangeError);
    });

    const passing: readonly (readonly [name: string, fault: S3Fault])[] = [
      ["has another byte", { corruptAt: SLICE_BYTES + 9 }],
      ["has another byte at the end", { corruptAt: BYTES.length - 1 }],
      ["is cut", { cutAfterBytes: 2 * SLICE_BYTES + 5 }],
      ["is cut at its begin", { cutAfterBytes: 0 }],
      ["gets a server error", { status: 500, code: "InternalError" }],
    ];
    for (const [what, fault] of passing) {
      it(`reads a slice once more that ${what}`, async () => {
        const reader = new CheckedObjects(store, names);
        // The list comes first, and does not get the fault.
        for await (const _ of reader.read(id, object)) break;
        bucket.proxy.resetCounts();
        bucket.proxy.inject(["get"], fault, 1);
        const pieces: Buffer[] = [];
        for await (const piece of reader.read(id, object)) pieces.push(piece);
        assert.ok(Buffer.concat(pieces).equals(BYTES));
        assert.equal(bucket.proxy.counts.get, 2);
      });
    }

    it("gives no byte of a slice that is bad twice, and ends with damaged", async () => {
      const reader = new CheckedObjects(store, names);
      for await (const _ of reader.read(id, object)) break;
      bucket.proxy.inject(["get"], { corruptAt: 1 }, 2);
      const pieces: Buffer[] = [];
      const work = (async () => {
        for await (const piece of reader.read(id, object)) pieces.push(piece);
      })();
      await assertRejects(work, "damaged");
      assert.equal(pieces.length, 0);
      // The next try is right.
      for await (const piece of reader.read(id, object)) pieces.push(piece);
      assert.ok(Buffer.concat(pieces).equals(BYTES));
    });

    it("ends with damaged for a forged list or another object under the name", async () => {
      const victim = await upload("packs/victim.pack", BYTES);
      const list = names.slices(id, victim.name);
      await store.put(list, Buffer.alloc(4 * 32));
      await assertRejects(read(victim), "damaged");
      await store.put(list, Buffer.alloc(3));
      await assertRejects(read(victim), "damaged");
      await upload(victim.name, Buffer.concat([BYTES.subarray(1), BYTES.subarray(0, 1)]));
      await assertRejects(read(victim), "damaged");
      await upload(victim.name, BYTES.subarray(5));
      await assertRejects(read(victim), "damaged");
      const swapped = await upload("responses/swapped", Buffer.alloc(1000));
      await assertRejects(read({ ...swapped, sha256: small.sha256 }), "damaged");
    });

    it("ends with missing, without a second try, if the object is gone", async () => {
      const gone = await upload("packs/gone.pack", BYTES);
      await store.delete(names.object(id, gone.name));
      await assertRejects(read(gone), "missing");
      await store.delete(names.slices(id, gone.name));
      bucket.proxy.resetCounts();
      await assertRejects(read(gone), "missing");
      assert.equal(bucket.proxy.counts.get, 1);
    });

    it("ends with the reason of its signal, and lets a reader leave", async () => {
      const ended = new AbortController();
      const work = (async () => {
        for await (const _ of new CheckedObjects(store, names).read(id, object, { signal: ended.signal }))
          ended.abort(new Error("enough"));
      })();
      await assert.rejects(work, /enough/);
      for await (const _ of new CheckedObjects(store, names).read(id, object)) break;
      assert.ok((await read(object)).equals(BYTES));
    });
  });
}
