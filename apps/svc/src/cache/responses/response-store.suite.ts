import { setTimeout as sleep } from "node:timers/promises";
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { repositoryId, type RepositoryId } from "../../access/repository-id.ts";
import { GrowingSums, StoredDataDamaged } from "./block-sums.ts";
import type { ResponseStore, StoredResponse } from "./response-store.ts";
import { framedPack } from "./references/reference.test-kit.ts";
import { SLICE_BYTES } from "./slices.ts";

/** More than the longest clock tick of Linux, 10 ms. */
const CLOCK_TICK_MS = 20;

/** A store of responses under test. */
export interface ResponseStoreSubject {
  readonly store: ResponseStore;
  /** Another process opens the same storage. @param hostUrl of its code host. Default: the same */
  reopen(hostUrl?: string): ResponseStore;
  /** Changes one byte of a stored response. */
  damage(id: RepositoryId, key: string, position: number): Promise<void>;
  /** Writes a pack of the repositories' mirrors. */
  putPack(name: string, bytes: Buffer): Promise<void>;
  removePack(name: string): Promise<void>;
  end(): Promise<void>;
}

const KEY = "a".repeat(64);
const NO_FIGURES = { responses: 0, bytes: 0, fileBytes: 0, references: 0, referredBytes: 0 };
const OTHER_KEY = "b".repeat(64);
const ID = repositoryId("Org", "Name");

/** Tests that every implementation of {@link ResponseStore} passes. `start` gives an empty store each time. */
export function responseStoreSuite(name: string, start: () => Promise<ResponseStoreSubject>): void {
  describe(`response store: ${name}`, () => {
    let subject: ResponseStoreSubject;
    let store: ResponseStore;
    beforeEach(async () => {
      subject = await start();
      ({ store } = subject);
    });
    afterEach(async () => subject.end());

    const contentOf = (bytes: number): Buffer =>
      Buffer.from(Array.from({ length: bytes }, (_, at) => at % 251));
    /** Writes a response in two parts. */
    const put = async (id: RepositoryId, key: string, content: Buffer, into = store): Promise<void> => {
      const sums = new GrowingSums();
      sums.push(content);
      const pending = await into.create(id, key);
      const half = content.length >> 1;
      await pending.write([content.subarray(0, half)], 0);
      await pending.write([content.subarray(half)], half);
      await pending.commit(sums.finish());
      await pending.close();
    };
    const readAll = async (response: StoredResponse): Promise<Buffer> => {
      const parts: Buffer[] = [];
      for (let at = 0; at < response.size;) {
        const slice = await response.slice(at);
        parts.push(Buffer.from(slice.bytes));
        at += slice.bytes.length;
        slice.release();
      }
      return Buffer.concat(parts);
    };
    const opened = async (id: RepositoryId, key: string, from = store): Promise<StoredResponse> => {
      const response = await from.open(id, key);
      assert.ok(response !== undefined && response !== "failed");
      return response;
    };

    it("gives back the bytes of a committed response, also to another process", async () => {
      const content = contentOf(SLICE_BYTES + 1000);
      await put(ID, KEY, content);
      for (const from of [store, subject.reopen()]) {
        const response = await opened(ID, KEY, from);
        assert.equal(response.size, content.length);
        assert.ok((await readAll(response)).equals(content));
        await response.close();
      }
    });

    it("finds a response under its own key, repository and code host only", async () => {
      await put(ID, KEY, contentOf(10));
      assert.equal(await store.open(ID, OTHER_KEY), undefined);
      assert.equal(await store.open(repositoryId("org", "other"), KEY), undefined);
      assert.equal(await subject.reopen("https://other.example").open(ID, KEY), undefined);
    });

    it("does not find a response before it is committed, nor after it is discarded", async () => {
      const pending = await store.create(ID, KEY);
      await pending.write([contentOf(100)], 0);
      assert.equal(await store.open(ID, KEY), undefined);
      await pending.discard();
      await pending.close();
      assert.equal(await store.open(ID, KEY), undefined);
      assert.deepEqual(await store.list(ID), []);
    });

    it("reads back what is written so far", async () => {
      const content = contentOf(SLICE_BYTES + 7);
      const sums = new GrowingSums();
      sums.push(content);
      const pending = await store.create(ID, KEY);
      await pending.write([content], 0);
      const slice = await pending.slice(0, SLICE_BYTES, sums);
      assert.ok(slice.bytes.equals(content.subarray(0, SLICE_BYTES)));
      slice.release();
      const chunks: Buffer[] = [];
      for await (const chunk of pending.chunks(content.length)) chunks.push(Buffer.from(chunk));
      assert.ok(Buffer.concat(chunks).equals(content));
      await pending.discard();
      await pending.close();
    });

    it("a response that is removed or replaced stays readable to those who have it open", async () => {
      const [first, second] = [contentOf(3000), contentOf(2000)];
      await put(ID, KEY, first);
      const before = await opened(ID, KEY);
      await put(ID, KEY, second);
      const after = await opened(ID, KEY);
      assert.equal(await store.remove(ID, KEY), true);
      assert.ok((await readAll(before)).equals(first));
      assert.ok((await readAll(after)).equals(second));
      await before.close();
      await after.close();
      assert.equal(await store.open(ID, KEY), undefined);
    });

    it("removing a response that is gone is not an error", async () => {
      await put(ID, KEY, contentOf(10));
      assert.equal(await store.remove(ID, KEY), true);
      assert.equal(await store.remove(ID, KEY), false);
    });

    it("lists responses, and knows their number and bytes", async () => {
      assert.deepEqual(store.figures(ID), NO_FIGURES);
      await put(ID, KEY, contentOf(1000));
      await put(ID, OTHER_KEY, contentOf(2000));
      const listed = await store.list(ID);
      assert.deepEqual(listed.map(({ name: key }) => key).toSorted(), [KEY, OTHER_KEY]);
      const bytes = listed.reduce((sum, { size }) => sum + size, 0);
      assert.ok(bytes >= 3000);
      assert.deepEqual(store.figures(ID), { ...NO_FIGURES, responses: 2, bytes, fileBytes: bytes });
      assert.deepEqual(await store.repositories(), [{ owner: "org", name: "name" }]);
    });

    it("listing shows that another process removed a response", async () => {
      await put(ID, KEY, contentOf(1000));
      await subject.reopen().remove(ID, KEY);
      assert.equal(store.figures(ID).responses, 1);
      assert.deepEqual(await store.list(ID), []);
      assert.deepEqual(store.figures(ID), NO_FIGURES);
    });

    it("finds nothing of a repository after all of it is removed, and others stay", async () => {
      const other = repositoryId("org", "other");
      await put(ID, KEY, contentOf(10));
      await put(other, KEY, contentOf(10));
      await store.removeAll(ID);
      assert.equal(await store.open(ID, KEY), undefined);
      assert.deepEqual(store.figures(ID), NO_FIGURES);
      await store.settled();
      await (await opened(other, KEY)).close();
      await put(ID, KEY, contentOf(20));
      await (await opened(ID, KEY)).close();
    });

    it("does not serve damaged bytes; a new response replaces the damaged one", async () => {
      await put(ID, KEY, contentOf(1000));
      await subject.damage(ID, KEY, 500);
      const later = subject.reopen();
      assert.equal(await later.open(ID, KEY), "failed");
      assert.equal(await later.open(ID, KEY), undefined);
      assert.equal((await later.list(ID)).length, 1, "it is kept apart");
      await put(ID, KEY, contentOf(1000), later);
      await (await opened(ID, KEY, later)).close();
    });

    it("checks each slice before it is served, even long after the response was opened", async () => {
      await put(ID, KEY, contentOf(3 * SLICE_BYTES));
      const response = await opened(ID, KEY);
      await subject.damage(ID, KEY, 2 * SLICE_BYTES + 5);
      await assert.rejects(async () => response.slice(2 * SLICE_BYTES), StoredDataDamaged);
      await response.close();
      assert.equal(await store.open(ID, KEY), undefined);
    });

    it("reads a response through again that another program has changed", async () => {
      await put(ID, KEY, contentOf(3 * SLICE_BYTES));
      await (await opened(ID, KEY)).close();
      await subject.damage(ID, KEY, 2 * SLICE_BYTES + 5);
      assert.equal(await store.open(ID, KEY), "failed");
    });

    it("stays sound while other processes use or remove it, and not when it is changed", async () => {
      await put(ID, KEY, contentOf(3 * SLICE_BYTES));
      const response = await opened(ID, KEY);
      await (await opened(ID, KEY, subject.reopen())).close();
      assert.equal(await response.soundFile?.isStillSound(false), true);
      const other = await opened(ID, KEY, subject.reopen());
      // The kernel's times of files are as coarse as its clock tick, so a change needs one of its own.
      await sleep(CLOCK_TICK_MS);
      await subject.damage(ID, KEY, 2 * SLICE_BYTES + 5);
      for (const each of [response, other]) {
        assert.equal(await each.soundFile?.isStillSound(false), false);
        await each.close();
      }
      assert.equal(await store.open(ID, KEY), "failed");
      await put(ID, KEY, contentOf(3 * SLICE_BYTES));
      const removed = await opened(ID, KEY);
      await subject.reopen().remove(ID, KEY);
      assert.equal(await removed.soundFile?.isStillSound(false), true);
      await removed.close();
    });

    it("does not trust what it knew of a response that was evicted", async () => {
      await put(ID, KEY, contentOf(3 * SLICE_BYTES));
      await store.remove(ID, KEY);
      await put(ID, KEY, contentOf(3 * SLICE_BYTES), subject.reopen());
      await subject.damage(ID, KEY, 2 * SLICE_BYTES + 5);
      assert.equal(await store.open(ID, KEY), "failed");
    });

    describe("references", () => {
      const { response: content, pack, name: packName } = framedPack(contentOf(3 * SLICE_BYTES));
      const refer = async (from = store): Promise<boolean> => from.refer(ID, KEY, "sha1");
      const isReference = async (from = store): Promise<boolean> => {
        const [facts] = await from.list(ID);
        assert.ok(facts !== undefined && facts.size >= content.length, "it counts as the response");
        return facts.fileBytes < 10_000;
      };

      it("a reference gives the same bytes, also to another process", async () => {
        await put(ID, KEY, content);
        await subject.putPack(packName, pack);
        const [before] = await store.list(ID);
        assert.ok(await refer());
        const [after] = await store.list(ID);
        assert.ok(Math.abs(after!.mtimeMs - before!.mtimeMs) < 1, "the time of the last use stays");
        assert.ok(await isReference());
        assert.deepEqual(store.figures(ID), {
          responses: 1,
          bytes: content.length,
          fileBytes: after!.fileBytes,
          references: 1,
          referredBytes: content.length,
        });
        for (const from of [subject.reopen(), store]) {
          const response = await opened(ID, KEY, from);
          assert.equal(response.size, content.length);
          assert.ok((await readAll(response)).equals(content));
          const at = SLICE_BYTES + 77;
          const slice = await response.slice(at);
          assert.ok(slice.bytes.equals(content.subarray(at, at + slice.bytes.length)));
          slice.release();
          await response.close();
          await from.settled();
        }
      });

      it("the use of a reference stores the whole response again", async () => {
        await put(ID, KEY, content);
        await subject.putPack(packName, pack);
        await refer();
        const readers = await Promise.all([opened(ID, KEY), opened(ID, KEY)]);
        assert.ok(readers.every(({ soundFile }) => soundFile === undefined));
        await store.settled();
        assert.ok(await isReference(), "it is written after the use");
        for (const reader of readers) await reader.close();
        await store.settled();
        assert.ok(!(await isReference()));
        const later = await opened(ID, KEY);
        assert.ok(later.soundFile !== undefined);
        await subject.removePack(packName);
        assert.ok((await readAll(later)).equals(content));
        await later.close();
        assert.equal((await store.list(ID)).length, 1);
      });

      it("a response stays as it is when the mirror has no such pack, or another one", async () => {
        await put(ID, KEY, content);
        assert.equal(await refer(), false);
        for (const other of [pack.subarray(1), Buffer.concat([pack.subarray(0, -1), Buffer.from("!")])]) {
          await subject.putPack(packName, other);
          assert.equal(await refer(), false);
        }
        assert.ok(!(await isReference()));
        assert.equal(await store.refer(ID, OTHER_KEY, "sha1"), false);
        const response = await opened(ID, KEY);
        assert.ok((await readAll(response)).equals(content));
        await response.close();
      });

      it("a response without a pack in it stays as it is", async () => {
        await put(ID, KEY, contentOf(200_000));
        assert.equal(await refer(), false);
        await (await opened(ID, KEY)).close();
      });

      it("a reference whose pack is gone is not found, and removed", async () => {
        await put(ID, KEY, content);
        await subject.putPack(packName, pack);
        await refer();
        const reader = await opened(ID, KEY);
        await subject.removePack(packName);
        assert.equal(await store.open(ID, KEY), undefined);
        assert.deepEqual(await store.list(ID), []);
        assert.ok((await readAll(reader)).equals(content), "who has it open reads on");
        await reader.close();
        await store.settled();
        assert.deepEqual(await store.list(ID), []);
      });

      it("a pack of another length is not the pack", async () => {
        await put(ID, KEY, content);
        await subject.putPack(packName, pack);
        await refer();
        await subject.putPack(packName, pack.subarray(0, -1));
        assert.equal(await store.open(ID, KEY), undefined);
        assert.deepEqual(await store.list(ID), []);
      });

      it("wrong bytes of the pack are not served", async () => {
        await put(ID, KEY, content);
        await subject.putPack(packName, pack);
        await refer();
        const reader = await opened(ID, KEY);
        const damaged = Buffer.from(pack);
        damaged[2 * SLICE_BYTES]! ^= 1;
        await subject.putPack(packName, damaged);
        assert.equal(await subject.reopen().open(ID, KEY), "failed");
        await assert.rejects(async () => readAll(reader), StoredDataDamaged);
        await reader.close();
        await store.settled();
        assert.equal(await store.open(ID, KEY), undefined);
      });

      it("a damaged reference is not served", async () => {
        await put(ID, KEY, content);
        await subject.putPack(packName, pack);
        await refer();
        await subject.damage(ID, KEY, 5);
        assert.equal(await subject.reopen().open(ID, KEY), "failed");
        assert.equal(await subject.reopen().open(ID, KEY), undefined);
      });

      it("what is removed while it is replaced stays removed", async () => {
        await put(ID, KEY, content);
        await subject.putPack(packName, pack);
        const referring = refer();
        await store.removeAll(ID);
        assert.equal(await referring, false);
        assert.deepEqual(await store.list(ID), []);
        await put(ID, KEY, content);
        await refer();
        await (await opened(ID, KEY)).close();
        await store.removeAll(ID);
        await store.settled();
        assert.equal(await store.open(ID, KEY), undefined);
      });

      it("two processes replace one response, and both serve it", async () => {
        await put(ID, KEY, content);
        await subject.putPack(packName, pack);
        const other = subject.reopen();
        const [a, b] = await Promise.all([refer(), refer(other)]);
        assert.ok(a || b);
        const readers = await Promise.all([opened(ID, KEY), opened(ID, KEY, other)]);
        for (const reader of readers) assert.ok((await readAll(reader)).equals(content));
        for (const reader of readers) await reader.close();
        await store.settled();
        await other.settled();
        assert.ok(!(await isReference()));
        assert.equal(await subject.reopen().removeLeftovers(), 0);
      });
    });

    it("has nothing to remove after a clean end", async () => {
      await put(ID, KEY, contentOf(10));
      assert.equal(await subject.reopen().removeLeftovers(), 0);
      await (await opened(ID, KEY)).close();
    });
  });
}
