import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, it } from "node:test";
import { until } from "@devplat/testkit";
import type { PendingResponse, StoredResponse } from "../../responses/response-store.ts";
import { Hydration } from "./hydration.ts";

const MEGABYTE = 2 ** 20;
const SIZE = 12 * MEGABYTE + 5;
/** Bytes in memory that no reader has, as a limit: some pieces more than the hydration allows. */
const MAX_AHEAD = 6 * MEGABYTE;

interface Disk {
  /** Bytes that can be written. */
  readonly room: number;
  readonly failsToCreate?: boolean;
  readonly failsToCommit?: boolean;
}

function testHydration({ room, failsToCreate = false, failsToCommit = false }: Disk) {
  const content = randomBytes(SIZE);
  const file = Buffer.alloc(SIZE);
  const seen = { sent: 0, isDiscarded: false, isCommitted: false };
  const pending: PendingResponse = {
    write: async ([bytes = Buffer.alloc(0)], position) => {
      if (position + bytes.length > room) throw new Error("ENOSPC");
      bytes.copy(file, position);
    },
    slice: (offset, end) => ({
      bytes: file.subarray(offset, Math.min(end, offset + MEGABYTE / 2)),
      release: () => undefined,
      abandon: () => undefined,
    }),
    chunks: () => {
      throw new Error("not here");
    },
    commit: async () => {
      if (failsToCommit) throw new Error("ENOSPC");
      seen.isCommitted = true;
    },
    discard: async () => void (seen.isDiscarded = true),
    close: async () => undefined,
  };
  const hydration = new Hydration({
    size: SIZE,
    download: async function* () {
      for (let at = 0; at < SIZE; at += MEGABYTE) {
        const piece = content.subarray(at, at + MEGABYTE);
        seen.sent += piece.length;
        yield piece;
        await Promise.resolve();
      }
    },
    create: async () => {
      if (failsToCreate) throw new Error("ENOSPC");
      return pending;
    },
    isCurrent: () => true,
  });
  return { hydration, content, seen };
}

/** Reads a response to its end. @param pause called before each slice */
async function readAll(response: StoredResponse, pause = async (_at: number): Promise<void> => undefined) {
  const parts: Buffer[] = [];
  let at = 0;
  while (at < response.size) {
    await pause(at);
    const slice = await response.slice(at);
    parts.push(Buffer.from(slice.bytes));
    at += slice.bytes.length;
    slice.release();
  }
  await response.close();
  return Buffer.concat(parts);
}

const never = new AbortController().signal;

describe("Hydration on a disk that fails", () => {
  for (const [title, disk] of [
    ["no file can be made", { room: 0, failsToCreate: true }],
    ["nothing can be written", { room: 0 }],
    ["it is full in the middle", { room: 5 * MEGABYTE }],
    ["it is full at the commit", { room: SIZE, failsToCommit: true }],
  ] as const) {
    it(`all readers get all bytes when ${title}`, async () => {
      const { hydration, content, seen } = testHydration(disk);
      const readers = [hydration.join(), hydration.join()];
      const ended = hydration.run(never);
      const read = await Promise.all(readers.map(async (each) => readAll(each)));
      for (const each of read) assert.ok(each.equals(content));
      assert.equal((await ended).kind, "unstored");
      assert.equal(seen.isCommitted, false);
      assert.equal(seen.isDiscarded, !("failsToCreate" in disk));
    });
  }

  it("the download waits for a slow reader, so that memory is bounded", async () => {
    const { hydration, content, seen } = testHydration({ room: 2 * MEGABYTE });
    const fast = hydration.join();
    const slow = hydration.join();
    const ended = hydration.run(never);
    let most = 0;
    const reading = readAll(fast);
    const read = await readAll(slow, async (at) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      most = Math.max(most, seen.sent - Math.max(at, 2 * MEGABYTE));
    });
    assert.ok(read.equals(content));
    assert.ok((await reading).equals(content));
    assert.ok(most <= MAX_AHEAD, `${most} bytes ahead`);
    assert.equal((await ended).kind, "unstored");
  });

  it("a reader that leaves lets the others go on, and without any it ends", async () => {
    const { hydration, content } = testHydration({ room: 0 });
    const [stays, leaves] = [hydration.join(), hydration.join()];
    const ended = hydration.run(never);
    await leaves.slice(0);
    const reading = readAll(stays);
    await leaves.close();
    assert.ok((await reading).equals(content));
    assert.equal((await ended).kind, "unstored");
    const alone = testHydration({ room: 0 });
    const reader = alone.hydration.join();
    const over = alone.hydration.run(never);
    await reader.slice(0);
    await reader.close();
    assert.equal((await over).kind, "ended");
    assert.equal(alone.hydration.isJoinable, false);
  });

  it("a stop of the service ends a download that waits for its readers", async () => {
    const { hydration, seen } = testHydration({ room: 0 });
    const stopping = new AbortController();
    const reader = hydration.join();
    const ended = hydration.run(stopping.signal);
    await reader.slice(0);
    await until(() => seen.sent >= 4 * MEGABYTE);
    stopping.abort(new Error("the service stops"));
    assert.equal((await ended).kind, "ended");
    await assert.rejects(async () => readAll(reader));
  });

  it("a request that comes later joins only while all bytes can be read", async () => {
    const { hydration } = testHydration({ room: 0 });
    const reader = hydration.join();
    const ended = hydration.run(never);
    await reader.slice(0);
    assert.equal(hydration.isJoinable, true);
    await reader.slice(3 * MEGABYTE);
    assert.equal(hydration.isJoinable, false);
    await reader.close();
    await ended;
  });
});
