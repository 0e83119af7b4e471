import assert from "node:assert/strict";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { encodeErrorLine } from "@devplat/git-protocol";
import { ResponseCheck } from "../responses/response-check.ts";
import { answerOf } from "../responses/response.test-kit.ts";
import { CoalescedFetch, ResponseCut, type FetchReader } from "./coalesced-fetch.ts";
import { PendingFile } from "../responses/pending-file.ts";
import type { PendingResponse } from "../responses/response-store.ts";
import { Slices } from "../responses/slices.ts";

describe("CoalescedFetch", () => {
  const drain = async (reader: FetchReader): Promise<Buffer> => {
    const parts: Buffer[] = [];
    for (;;) {
      const part = await reader.read();
      if (part === undefined) return Buffer.concat(parts);
      if (part.kind === "stored") {
        parts.push(Buffer.from(part.slice.bytes));
        part.slice.release();
      } else parts.push(...part.chunks);
    }
  };
  async function* chunksOf(bytes: Buffer, step: number, cutAt = Infinity): AsyncGenerator<Buffer> {
    for (let at = 0; at < bytes.length; at += step) {
      if (at >= cutAt) throw new Error("cut");
      yield bytes.subarray(at, at + step);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  const pendingAt = async (
    folder: string,
    flags: string,
    slices = new Slices(),
  ): Promise<PendingResponse> => {
    const pendingPath = join(folder, "pending");
    const [handle, path] = [await open(pendingPath, flags), join(folder, "key")];
    return new PendingFile({
      handle,
      pendingPath,
      path,
      identity: Buffer.alloc(32),
      slices,
      onComplete: () => undefined,
      onCommitted: () => undefined,
    });
  };
  const withFile = async (
    action: (pending: PendingResponse, slices: Slices, folder: string) => Promise<void>,
  ): Promise<void> => {
    const folder = await mkdtemp(join(tmpdir(), "fetch-"));
    const slices = new Slices();
    const pending = await pendingAt(folder, "wx+", slices);
    try {
      await action(pending, slices, folder);
    } finally {
      await pending.close();
      await rm(folder, { recursive: true });
    }
  };

  it("gives every reader the whole response, from the beginning, whenever it joined", async () => {
    await withFile(async (pending) => {
      const response = answerOf(100_000);
      const fetch = new CoalescedFetch(new ResponseCheck("sha1"));
      const first = drain(fetch.join());
      const run = fetch.run(chunksOf(response, 1500), pending);
      assert.equal(await fetch.shared, true);
      const second = drain(fetch.join());
      assert.deepEqual(await run, {
        storable: true,
        reason: undefined,
        diskError: undefined,
        bytes: response.length,
      });
      const third = drain(fetch.join());
      for (const read of [first, second, third]) assert.ok((await read).equals(response));
    });
  });

  it("gives readers of any speed the same bytes, from memory and from the file", async () => {
    await withFile(async (pending, slices) => {
      const response = answerOf(5_000_000);
      const fetch = new CoalescedFetch(new ResponseCheck("sha1"));
      const kinds = new Set<string>();
      const readSlowly = async (reader: FetchReader, turns: number): Promise<Buffer> => {
        const parts: Buffer[] = [];
        for (let part = await reader.read(); part !== undefined; part = await reader.read()) {
          kinds.add(part.kind);
          if (part.kind === "live") parts.push(...part.chunks);
          else {
            for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
            // The slice is copied only now, to see that nothing changed it while it was held.
            parts.push(Buffer.from(part.slice.bytes));
            part.slice.release();
          }
        }
        reader.leave();
        return Buffer.concat(parts);
      };
      const first = readSlowly(fetch.join(), 0);
      const run = fetch.run(chunksOf(response, 37_000), pending);
      assert.equal(await fetch.shared, true);
      const others = Array.from({ length: 12 }, (_, n) => readSlowly(fetch.join(), n * 3));
      const last = fetch.join();
      await run;
      for (const read of [first, ...others]) assert.ok((await read).equals(response));
      // A reader that begins after the last write reads the file. Only its end is not in a whole slice.
      kinds.clear();
      assert.ok((await readSlowly(last, 0)).equals(response));
      assert.deepEqual([...kinds].toSorted(), ["live", "stored"]);
      fetch.close();
      await fetch.closed;
      await pending.close();
      assert.equal(slices.bytes, 0, "nothing of it stays in memory");
    });
  });

  it("keeps the file open for a reader that joins after all others left", async () => {
    await withFile(async (pending) => {
      const fetch = new CoalescedFetch(new ResponseCheck("sha1"));
      let closed = false;
      void fetch.closed.then(() => (closed = true));
      const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
      const reader = fetch.join();
      const run = fetch.run(chunksOf(answerOf(50_000), 1500), pending);
      await drain(reader);
      await run;
      reader.leave();
      await turn();
      assert.equal(closed, false, "the response is being stored: it can still be found");
      assert.equal(fetch.joinable, true);
      const late = fetch.join();
      fetch.close();
      await turn();
      assert.equal(closed, false, "somebody reads");
      assert.equal(fetch.joinable, false);
      late.leave();
      await turn();
      assert.equal(closed, true);
    });
  });

  it("a cut response ends at the border of a packet, and tells where an error belongs", async () => {
    await withFile(async (pending) => {
      const fetch = new CoalescedFetch(new ResponseCheck("sha1"));
      const reader = fetch.join();
      const run = fetch.run(chunksOf(answerOf(200_000), 1500, 90_000), pending);
      await assert.rejects(drain(reader), (error) => error instanceof ResponseCut && error.inPackfile);
      const outcome = await run;
      assert.equal(outcome.storable, false);
      assert.equal(fetch.joinable, false);
    });
  });

  it("an error before the first pack byte is not shared", async () => {
    await withFile(async (pending) => {
      const fetch = new CoalescedFetch(new ResponseCheck("sha1"));
      const reader = fetch.join();
      const run = fetch.run(chunksOf(encodeErrorLine("not our ref"), 3), pending);
      assert.equal(await fetch.shared, false);
      assert.equal(fetch.joinable, false);
      assert.ok((await drain(reader)).equals(encodeErrorLine("not our ref")));
      await run;
    });
  });

  it("a disk that fails in the middle is not noticed by the readers that are there", async () => {
    await withFile(async (_pending, _slices, folder) => {
      const response = answerOf(300_000);
      const fetch = new CoalescedFetch(new ResponseCheck("sha1"));
      const readers = [drain(fetch.join()), drain(fetch.join())];
      // A file that can be read and not written stands for a full disk.
      const readOnly = await pendingAt(folder, "r");
      const outcome = await fetch.run(chunksOf(response, 5000), readOnly);
      for (const read of readers) assert.ok((await read).equals(response));
      assert.equal(outcome.storable, false);
      assert.notEqual(outcome.diskError, undefined);
      assert.equal(fetch.joinable, false);
      await readOnly.close();
    });
  });

  it("without a file the slowest reader sets the pace, and memory is limited", async () => {
    const response = answerOf(20_000_000);
    const fetch = new CoalescedFetch(new ResponseCheck("sha1"));
    let given = 0;
    async function* counted(): AsyncGenerator<Buffer> {
      for await (const chunk of chunksOf(response, 1_000_000)) {
        given += chunk.length;
        yield chunk;
      }
    }
    const reader = fetch.join();
    const run = fetch.run(counted(), undefined);
    for (let n = 0; n < 100; n++) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(given < 11_000_000, `${given} bytes taken`);
    assert.ok((await drain(reader)).equals(response));
    await run;
  });

  it("is cancelled when the last reader leaves, not before", () => {
    const fetch = new CoalescedFetch(new ResponseCheck("sha1"));
    const [one, two] = [fetch.join(), fetch.join()];
    one.leave();
    one.leave();
    assert.equal(fetch.signal.aborted, false);
    two.leave();
    assert.equal(fetch.signal.aborted, true);
  });
});
