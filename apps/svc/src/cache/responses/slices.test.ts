import assert from "node:assert/strict";
import { mkdtemp, open, rm, type FileHandle } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { GrowingSums, StoredDataDamaged, type FileSums } from "./block-sums.ts";
import { fileReader } from "./file-io.ts";
import { SLICE_BYTES, Slices } from "./slices.ts";

const COUNT = 12;
const SIZE = COUNT * SLICE_BYTES + 7;

describe("Slices", () => {
  let folder: string;
  let handle: FileHandle;
  let sums: FileSums;
  before(async () => {
    const growing = new GrowingSums();
    folder = await mkdtemp(join(tmpdir(), "slices-"));
    handle = await open(join(folder, "f"), "wx+");
    const parts = Array.from({ length: COUNT }, (_, index) => Buffer.alloc(SLICE_BYTES, index + 1));
    for (const part of [...parts, Buffer.from("the end")]) {
      await handle.write(part);
      growing.push(part);
    }
    sums = growing.finish();
  });
  after(async () => {
    await handle.close();
    await rm(folder, { recursive: true });
  });
  const take = async (slices: Slices, index: number, file = "f") =>
    slices.take(file, fileReader(handle.fd), index * SLICE_BYTES, SIZE, sums);

  it("reads a slice once for concurrent callers; later callers do not wait", async () => {
    const slices = new Slices();
    const [one, two] = await Promise.all([take(slices, 3), take(slices, 3)]);
    assert.equal(one.bytes, two.bytes);
    assert.ok(one.bytes.every((byte) => byte === 4));
    assert.equal(slices.bytes, SLICE_BYTES);
    const third = slices.take("f", fileReader(-1), 3 * SLICE_BYTES, SIZE, sums);
    assert.ok(!(third instanceof Promise), "it is in memory: no file is needed");
    assert.equal(third.bytes, one.bytes);
  });

  it("gives the last bytes of the file as a short slice, and an error beyond the end", async () => {
    const slices = new Slices();
    const last = await take(slices, COUNT);
    assert.equal(last.bytes.toString(), "the end");
    await assert.rejects(
      async () => slices.take("g", fileReader(handle.fd), COUNT * SLICE_BYTES, SIZE + 1, sums),
      /became shorter/,
    );
    await assert.rejects(async () => slices.take("f", fileReader(-1), SLICE_BYTES, SIZE, sums), {
      code: "ERR_OUT_OF_RANGE",
    });
    assert.equal(slices.bytes, 7, "what failed is not kept");
    (await take(slices, 1)).release();
  });

  it("evicts the slices used longest ago, and none that is in use", async () => {
    const slices = new Slices(4 * SLICE_BYTES);
    const held = await take(slices, 0);
    for (const index of [1, 2, 3, 4, 5]) (await take(slices, index)).release();
    assert.equal(slices.bytes, 4 * SLICE_BYTES);
    assert.ok(held.bytes.every((byte) => byte === 1));
    assert.ok(!(slices.take("f", fileReader(-1), 0, SIZE, sums) instanceof Promise));
    const evicted = slices.take("f", fileReader(handle.fd), SLICE_BYTES, SIZE, sums);
    assert.ok(evicted instanceof Promise);
    assert.ok((await evicted).bytes.every((byte) => byte === 2));
  });

  it("a large file that is read once does not evict slices that were used twice", async () => {
    const slices = new Slices(4 * SLICE_BYTES);
    for (let count = 0; count < 2; count++) {
      for (const index of [0, 1]) (await take(slices, index, "popular")).release();
    }
    for (let index = 0; index < COUNT; index++) (await take(slices, index, "large")).release();
    for (const index of [0, 1]) {
      assert.ok(
        !(slices.take("popular", fileReader(-1), index * SLICE_BYTES, SIZE, sums) instanceof Promise),
      );
    }
  });

  it("gives each caller a small buffer of its own while too much is in use", async () => {
    const slices = new Slices(4 * SLICE_BYTES);
    const held = await Promise.all([0, 1, 2].map((index) => take(slices, index)));
    assert.equal(slices.crowded, true);
    const own = await slices.take("f", fileReader(handle.fd), 3 * SLICE_BYTES + 5, SIZE, sums);
    assert.ok(own.bytes.length < SLICE_BYTES && own.bytes.every((byte) => byte === 4));
    assert.ok(
      !(slices.take("f", fileReader(-1), 2 * SLICE_BYTES, SIZE, sums) instanceof Promise),
      "what is there is shared",
    );
    const last = await slices.take("f", fileReader(handle.fd), COUNT * SLICE_BYTES + 4, SIZE, sums);
    assert.equal(last.bytes.toString(), "end");
    for (const slice of held.slice(0, 2)) slice.release();
    assert.equal(slices.crowded, false);
    assert.equal((await take(slices, 3)).bytes.length, SLICE_BYTES);
  });

  it("gives the rest of a slice from an offset within it", async () => {
    const slices = new Slices();
    const rest = await slices.take("f", fileReader(handle.fd), 2 * SLICE_BYTES - 3, SIZE, sums);
    assert.deepEqual([...rest.bytes], [2, 2, 2]);
    rest.release();
    assert.deepEqual(
      [...(await slices.take("f", fileReader(-1), 2 * SLICE_BYTES - 2, SIZE, sums)).bytes],
      [2, 2],
    );
  });

  it("uses memory again once all have released it, never while somebody holds it", async () => {
    const slices = new Slices(4 * SLICE_BYTES);
    const [one, two] = await Promise.all([take(slices, 0), take(slices, 0)]);
    one.release();
    one.release();
    slices.forget("f");
    const other = await take(slices, 1, "g");
    assert.notEqual(other.bytes, two.bytes);
    assert.ok(two.bytes.every((byte) => byte === 1));
    two.release();
    assert.equal((await take(slices, 2, "g")).bytes, two.bytes);
  });

  it("never uses memory again that a client's kernel may still read", async () => {
    const slices = new Slices(4 * SLICE_BYTES);
    const slice = await take(slices, 0);
    slice.abandon();
    slices.forget("f");
    const next = await take(slices, 1, "g");
    assert.notEqual(next.bytes, slice.bytes);
    assert.ok(slice.bytes.every((byte) => byte === 1));
  });

  it("gives nothing of a slice in which a bit changed on the disk, nor keeps it", async () => {
    const at = 5 * SLICE_BYTES + 300_000;
    await handle.write(Buffer.from([7]), 0, 1, at);
    try {
      const shared = new Slices();
      await assert.rejects(take(shared, 5), StoredDataDamaged);
      assert.equal(shared.bytes, 0);
      (await take(shared, 6)).release();
      // Without room for a slice of its own, a sender gets the sound part before the damage, and not the next one.
      const crowded = new Slices(SLICE_BYTES);
      const held = await Promise.all([take(crowded, 0), take(crowded, 1)]);
      const own = await crowded.take("f", fileReader(handle.fd), 5 * SLICE_BYTES, SIZE, sums);
      assert.ok(own.bytes.every((byte) => byte === 6));
      const next = 5 * SLICE_BYTES + 2 * own.bytes.length;
      await assert.rejects(
        async () => crowded.take("f", fileReader(handle.fd), next, SIZE, sums),
        StoredDataDamaged,
      );
      for (const slice of held) slice.release();
    } finally {
      await handle.write(Buffer.from([6]), 0, 1, at);
    }
  });

  it("forgets a file, and then reads the same name again", async () => {
    const slices = new Slices();
    (await take(slices, 0)).release();
    slices.forget("f");
    assert.equal(slices.bytes, 0);
    assert.ok(slices.take("f", fileReader(handle.fd), 0, SIZE, sums) instanceof Promise);
  });
});
