import assert from "node:assert/strict";
import { hash, randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { it } from "node:test";
import { Secret } from "@devplat/base";
import { tempFolder, type S3Server } from "@devplat/testkit";
import { fixedCredentials } from "./credentials.ts";
import { ObjectStoreError, type ObjectStoreErrorCode } from "./errors.ts";
import type { GetResult, ObjectStore } from "./object-store.ts";
import { openS3Store, type S3Settings } from "./s3.ts";

/** Parts of the smallest size that S3 takes, so that small files have several. */
export const PART_BYTES = 5 << 20;

/** A store on a server of the test kit, or on a proxy in front of it. */
export function openTestStore(server: S3Server, settings: Partial<S3Settings> = {}): ObjectStore {
  return openS3Store({
    endpoint: server.endpoint,
    bucket: server.bucket,
    region: server.region,
    caFile: server.caFile,
    credentials: fixedCredentials(server.accessKeyId, new Secret(server.secretAccessKey)),
    partBytes: PART_BYTES,
    // The tests run with others on the same machine.
    timeoutMs: 20_000,
    ...settings,
  });
}

export const faultWith =
  (code: ObjectStoreErrorCode, more: Partial<ObjectStoreError> = {}) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof ObjectStoreError, String(error));
    assert.equal(error.code, code, error.message);
    for (const [name, value] of Object.entries(more)) {
      assert.equal(error[name as keyof ObjectStoreError], value, `${name}: ${error.message}`);
    }
    return true;
  };

export async function bytesOf(found: GetResult): Promise<Buffer> {
  assert.ok(found.modified);
  return Buffer.concat((await found.body.toArray()) as Buffer[]);
}

export const textOf = async (found: GetResult): Promise<string> => (await bytesOf(found)).toString();

/** A file with random bytes. The caller must remove it. */
export async function randomFile(
  length: number,
): Promise<{ readonly path: string; readonly bytes: Buffer; remove(): Promise<void> }> {
  const folder = await tempFolder("object-store");
  const path = join(folder.path, "file");
  const bytes = randomBytes(length);
  await writeFile(path, bytes);
  return { path, bytes, remove: () => folder.remove() };
}

/** The contract of {@link ObjectStore}: every implementation passes it. */
export function checkObjectStore(store: () => ObjectStore): void {
  const text = (value: string): Buffer => Buffer.from(value);

  it("gives back what was put, with its length, ETag and time", async () => {
    const { etag } = await store().put("basic/a", text("content"));
    const found = await store().get("basic/a");
    assert.ok(found.modified);
    assert.equal(found.etag, etag);
    assert.equal(found.length, 7);
    assert.equal(found.bodyLength, 7);
    assert.ok(Math.abs((found.lastModified ?? 0) - store().now()) < 60_000);
    assert.equal(await textOf(found), "content");
    const { length, etag: same } = await store().head("basic/a");
    assert.deepEqual([length, same], [7, etag]);
    await store().put("basic/empty", text(""));
    assert.equal(await textOf(await store().get("basic/empty")), "");
  });

  it("rejects with missing for an object that is not there", async () => {
    await assert.rejects(store().get("missing/a"), faultWith("missing"));
    await assert.rejects(store().head("missing/a"), faultWith("missing"));
    await store().delete("missing/a");
    await store().abortUpload({ key: "missing/a", uploadId: "6cf9ef3e-9bd1-4d35-8a11-0dbd1f4a0a35" });
  });

  it("gives ranges, also one that ends behind the object", async () => {
    await store().put("range/a", text("0123456789"));
    const range = async (first: number, length: number): Promise<string> =>
      await textOf(await store().get("range/a", { range: { first, length } }));
    assert.equal(await range(0, 1), "0");
    assert.equal(await range(3, 4), "3456");
    assert.equal(await range(8, 100), "89");
    const found = await store().get("range/a", { range: { first: 3, length: 4 } });
    assert.ok(found.modified);
    assert.deepEqual([found.length, found.bodyLength], [10, 4]);
    found.body.destroy();
    await assert.rejects(store().get("range/a", { range: { first: 10, length: 1 } }), faultWith("refused"));
  });

  it("does not send an object that has the ETag of If-None-Match", async () => {
    const { etag } = await store().put("etag/a", text("one"));
    assert.deepEqual(await store().get("etag/a", { ifNoneMatch: etag }), { modified: false, etag });
    await store().put("etag/a", text("two"));
    assert.equal(await textOf(await store().get("etag/a", { ifNoneMatch: etag })), "two");
  });

  it("rejects a read whose If-Match is another revision", async () => {
    const { etag } = await store().put("revision/a", text("one"));
    assert.equal(await textOf(await store().get("revision/a", { ifMatch: etag })), "one");
    await store().put("revision/a", text("two"));
    await assert.rejects(store().get("revision/a", { ifMatch: etag }), faultWith("condition_failed"));
  });

  it("ends a stream with damaged if the bytes do not have the expected SHA-256", async () => {
    await store().put("hash/a", text("content"));
    const sha256 = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73";
    assert.equal(await textOf(await store().get("hash/a", { sha256 })), "content");
    await store().put("hash/a", text("CONTENT"));
    await assert.rejects(async () => textOf(await store().get("hash/a", { sha256 })), faultWith("damaged"));
  });

  it("puts with ifAbsent only where nothing is", async () => {
    await store().put("absent/a", text("one"), { condition: { ifAbsent: true } });
    await assert.rejects(
      store().put("absent/a", text("two"), { condition: { ifAbsent: true } }),
      faultWith("condition_failed", { outcomeUnknown: false }),
    );
    assert.equal(await textOf(await store().get("absent/a")), "one");
  });

  it("puts with ifMatch only over that revision, and one of several writers wins", async () => {
    const { etag } = await store().put("match/a", text("one"));
    await assert.rejects(
      store().put("match/none", text("two"), { condition: { ifMatch: etag } }),
      faultWith("condition_failed"),
    );
    const writers = ["1", "2", "3", "4", "5", "6"].map((value) =>
      store().put("match/a", text(value), { condition: { ifMatch: etag } }),
    );
    const results = await Promise.allSettled(writers);
    assert.equal(results.filter(({ status }) => status === "fulfilled").length, 1);
    for (const each of results) if (each.status === "rejected") faultWith("condition_failed")(each.reason);
    const winner = results.findIndex(({ status }) => status === "fulfilled");
    assert.equal(await textOf(await store().get("match/a")), String(winner + 1));
  });

  it("writes files of every size around a part, whole and in order", async () => {
    for (const length of [0, 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES + 17]) {
      const file = await randomFile(length);
      try {
        const written = await store().putLarge("large/a", file.path);
        assert.equal(written.length, length);
        const found = await bytesOf(await store().get("large/a"));
        assert.ok(found.equals(file.bytes), `${length} bytes`);
        assert.equal((await store().head("large/a")).etag, written.etag);
      } finally {
        await file.remove();
      }
    }
  });

  it("writes from a source that is not a file, and nothing of one that fails", async () => {
    const content = randomBytes(2 * PART_BYTES + 3);
    const source = (failAt = Infinity) => ({
      length: content.length,
      read: (buffer: Uint8Array, position: number): Promise<void> => {
        if (position >= failAt) return Promise.reject(new Error("damaged"));
        buffer.set(content.subarray(position, position + buffer.length));
        return Promise.resolve();
      },
    });
    const hashes = new Map<number, string>();
    const hashed = (position: number, sha256: Buffer): void =>
      void hashes.set(position, sha256.toString("hex"));
    assert.equal((await store().putLarge("source/a", { ...source(), hashed })).length, content.length);
    const positions = Array.from({ length: Math.ceil(content.length / 2 ** 20) }, (_, at) => at * 2 ** 20);
    for (const at of positions)
      assert.equal(hashes.get(at), hash("sha256", content.subarray(at, at + 2 ** 20)));
    assert.equal(hashes.size, positions.length);
    assert.ok((await bytesOf(await store().get("source/a"))).equals(content));
    await assert.rejects(store().putLarge("source/b", source(PART_BYTES)), /damaged/);
    await assert.rejects(store().head("source/b"), faultWith("missing"));
    assert.deepEqual((await store().listUploads("source/b")).entries, []);
  });

  it("completes a multipart upload only under its condition", async () => {
    const file = await randomFile(PART_BYTES + 1);
    try {
      const condition = { ifAbsent: true } as const;
      const { etag } = await store().putLarge("large/c", file.path, { condition });
      await assert.rejects(
        store().putLarge("large/c", file.path, { condition }),
        faultWith("condition_failed", { outcomeUnknown: false }),
      );
      const ifMatch = (await store().put("large/other", text("other"))).etag;
      await assert.rejects(
        store().putLarge("large/c", file.path, { condition: { ifMatch } }),
        faultWith("condition_failed"),
      );
      assert.equal((await store().head("large/c")).etag, etag);
      await store().putLarge("large/c", file.path, { condition: { ifMatch: etag } });
      assert.deepEqual((await store().listUploads("large/c")).entries, []);
    } finally {
      await file.remove();
    }
  });

  it("lists by pages, sorted, and only below the prefix", async () => {
    const keys = ["list/a", "list/b/1", "list/b/2", "list/c"];
    for (const key of [...keys, "listed/not"]) await store().put(key, text(key));
    const found: string[] = [];
    let from: string | undefined;
    let pages = 0;
    do {
      const page = await store().list("list/", { limit: 3, ...(from !== undefined && { from }) });
      assert.ok(page.entries.length <= 3);
      found.push(...page.entries.map(({ key }) => key));
      assert.ok(page.entries.every(({ key, length, etag }) => length === key.length && etag.startsWith('"')));
      from = page.next;
      pages++;
    } while (from !== undefined);
    assert.deepEqual(found, keys);
    assert.equal(pages, 2);
    assert.deepEqual(await store().list("nothing/"), { entries: [], next: undefined });
  });

  it("deletes an object", async () => {
    await store().put("delete/a", text("one"));
    await store().delete("delete/a");
    await assert.rejects(store().head("delete/a"), faultWith("missing"));
  });

  it("keeps odd names as they are", async () => {
    const names = [
      "a b",
      "a+b",
      "100%",
      "%41",
      ".hidden",
      "..two",
      "ä/ö",
      "日本",
      "'(!)*",
      "a=b&c",
      "~?#",
      "é",
      "🙂",
      "<&>\"'",
    ];
    for (const name of names) await store().put(`names/${name}/x`, text(name));
    for (const name of names) assert.equal(await textOf(await store().get(`names/${name}/x`)), name);
    const listed = (await store().list("names/")).entries.map(({ key }) => key);
    assert.deepEqual(listed.toSorted(), names.map((name) => `names/${name}/x`).toSorted());
    for (const name of names) await store().delete(`names/${name}/x`);
    assert.deepEqual((await store().list("names/")).entries, []);
  });

  it("refuses names that a store could change, before it sends anything", async () => {
    const refused = [
      "",
      "/a",
      "a/",
      "a//b",
      ".",
      "a/../b",
      "./a",
      "a\u0000",
      "a\nb",
      "\ud800",
      "x".repeat(256),
    ];
    for (const key of [...refused, "long/".repeat(300)]) {
      await assert.rejects(store().put(key, text("x")), faultWith("invalid_key"), JSON.stringify(key));
      await assert.rejects(store().get(key), faultWith("invalid_key"));
    }
  });

  it("ends a call with the reason of its signal", async () => {
    const reason = new Error("enough");
    const signal = AbortSignal.abort(reason);
    await assert.rejects(store().get("basic/a", { signal }), reason);
    const file = await randomFile(PART_BYTES + 1);
    try {
      await assert.rejects(store().putLarge("aborted/a", file.path, { signal }), reason);
    } finally {
      await file.remove();
    }
    await assert.rejects(store().head("aborted/a"), faultWith("missing"));
  });
}
