import assert from "node:assert/strict";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { ResponseChunks } from "@devplat/git-mirror";
import { PendingFile } from "../responses/pending-file.ts";
import type { PendingResponse } from "../responses/response-store.ts";
import { ResponseCheck } from "../responses/response-check.ts";
import { answerOf } from "../responses/response.test-kit.ts";
import { Slices } from "../responses/slices.ts";
import { CoalescedFetch, type FetchReader } from "./coalesced-fetch.ts";

const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
};

describe("CoalescedFetch with chunks that are used again", () => {
  /** Chunks of a response. Each is overwritten as soon as it comes back. */
  const recycled = (
    response: Buffer,
    step: number,
  ): { chunks: ResponseChunks; back: Buffer[]; count: number } => {
    const back: Buffer[] = [];
    const recycle = (chunk: Buffer): void => {
      assert.ok(!back.includes(chunk), "a chunk came back twice");
      back.push(chunk);
      chunk.fill(0xee);
    };
    async function* all(): AsyncGenerator<Buffer> {
      for (let at = 0; at < response.length; at += step) {
        yield Buffer.from(response.subarray(at, at + step));
        await turns(1);
      }
    }
    return { chunks: Object.assign(all(), { recycle }), back, count: Math.ceil(response.length / step) };
  };
  /** Reads at some speed. Bytes are looked at only immediately before the next read. */
  const readSlowly = async (reader: FetchReader, pace: number): Promise<Buffer> => {
    const parts: Buffer[] = [];
    for (let part = await reader.read(); part !== undefined; part = await reader.read()) {
      await turns(pace);
      if (part.kind === "live") parts.push(...part.chunks.map((chunk) => Buffer.from(chunk)));
      else {
        parts.push(Buffer.from(part.slice.bytes));
        part.slice.release();
      }
    }
    reader.leave();
    return Buffer.concat(parts);
  };
  const withFile = async (action: (pending: PendingResponse) => Promise<void>): Promise<void> => {
    const folder = await mkdtemp(join(tmpdir(), "fetch-"));
    const pendingPath = join(folder, "pending");
    const pending = new PendingFile({
      handle: await open(pendingPath, "wx+"),
      pendingPath,
      path: join(folder, "key"),
      identity: Buffer.alloc(32),
      slices: new Slices(),
      onComplete: () => undefined,
      onCommitted: () => undefined,
    });
    try {
      await action(pending);
    } finally {
      await pending.close();
      await rm(folder, { recursive: true });
    }
  };

  it("overwrites no chunk that a reader or the file still needs", async () => {
    await withFile(async (pending) => {
      const response = answerOf(6_000_000);
      const { chunks, back, count } = recycled(response, 41_000);
      const fetch = new CoalescedFetch(new ResponseCheck("sha1"));
      const first = readSlowly(fetch.join(), 0);
      const run = fetch.run(chunks, pending);
      assert.equal(await fetch.shared, true);
      const others = Array.from({ length: 10 }, (_, n) => readSlowly(fetch.join(), n * 2));
      for (const read of [first, ...others]) assert.ok((await read).equals(response));
      assert.equal((await run).storable, true);
      assert.ok(back.length > 0, "chunks come back while the response runs");
      fetch.close();
      await fetch.closed;
      assert.equal(back.length, count, "all chunks came back");
    });
  });

  it("without a file overwrites a chunk only after the slowest reader", async () => {
    const response = answerOf(3_000_000);
    const { chunks, back, count } = recycled(response, 50_000);
    const fetch = new CoalescedFetch(new ResponseCheck("sha1"));
    const readers = [0, 3, 9].map((pace) => readSlowly(fetch.join(), pace));
    const run = fetch.run(chunks, undefined);
    for (const read of readers) assert.ok((await read).equals(response));
    await run;
    fetch.close();
    await fetch.closed;
    assert.equal(back.length, count);
  });

  it("never overwrites the chunks of a reader that left while they were on their way", async () => {
    const response = answerOf(1_000_000);
    const { chunks, back, count } = recycled(response, 30_000);
    const fetch = new CoalescedFetch(new ResponseCheck("sha1"));
    const leaving = fetch.join();
    const other = readSlowly(fetch.join(), 0);
    const run = fetch.run(chunks, undefined);
    const part = await leaving.read();
    assert.ok(part?.kind === "live");
    const [sending] = part.chunks;
    const before = Buffer.from(sending!);
    leaving.leave();
    assert.ok((await other).equals(response));
    await run;
    fetch.close();
    await fetch.closed;
    assert.ok(sending!.equals(before), "the operating system may still read it");
    assert.equal(back.length, count - part.chunks.length);
  });
});
