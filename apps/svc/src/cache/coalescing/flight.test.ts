import assert from "node:assert/strict";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { encodeErrorLine } from "@devplat/git-protocol";
import { AnswerCheck } from "../responses/answer-check.ts";
import { answerOf } from "../answer.test-kit.ts";
import { Flight, FlightCut, type FlightReader } from "./flight.ts";
import { Slices } from "../responses/slices.ts";

describe("Flight", () => {
  const drain = async (reader: FlightReader): Promise<Buffer> => {
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
  const withFile = async (action: (fd: number) => Promise<void>): Promise<void> => {
    const folder = await mkdtemp(join(tmpdir(), "flight-"));
    const handle = await open(join(folder, "f"), "wx+");
    try {
      await action(handle.fd);
    } finally {
      await handle.close();
      await rm(folder, { recursive: true });
    }
  };

  it("gives every reader the whole answer, from the beginning, whenever it joined", async () => {
    await withFile(async (fd) => {
      const answer = answerOf(100_000);
      const flight = new Flight(new AnswerCheck("sha1"), new Slices());
      const first = drain(flight.join());
      const run = flight.run(chunksOf(answer, 1500), fd);
      assert.equal(await flight.shared, true);
      const second = drain(flight.join());
      assert.deepEqual(await run, {
        storable: true,
        reason: undefined,
        diskError: undefined,
        bytes: answer.length,
      });
      const third = drain(flight.join());
      for (const read of [first, second, third]) assert.ok((await read).equals(answer));
    });
  });

  it("gives readers of any speed the same bytes, from memory, slices of the file and what has just arrived", async () => {
    await withFile(async (fd) => {
      const answer = answerOf(5_000_000);
      const slices = new Slices();
      const flight = new Flight(new AnswerCheck("sha1"), slices);
      const kinds = new Set<string>();
      const readSlowly = async (reader: FlightReader, turns: number): Promise<Buffer> => {
        const parts: Buffer[] = [];
        for (let part = await reader.read(); part !== undefined; part = await reader.read()) {
          kinds.add(part.kind);
          if (part.kind === "live") parts.push(...part.chunks);
          else {
            for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
            // Only now: nobody may have changed it meanwhile.
            parts.push(Buffer.from(part.slice.bytes));
            part.slice.release();
          }
        }
        reader.leave();
        return Buffer.concat(parts);
      };
      const first = readSlowly(flight.join(), 0);
      const run = flight.run(chunksOf(answer, 37_000), fd);
      assert.equal(await flight.shared, true);
      const others = Array.from({ length: 12 }, (_, n) => readSlowly(flight.join(), n * 3));
      const last = flight.join();
      await run;
      for (const read of [first, ...others]) assert.ok((await read).equals(answer));
      // Whoever begins when all is written reads the file; only its end is in no whole slice.
      kinds.clear();
      assert.ok((await readSlowly(last, 0)).equals(answer));
      assert.deepEqual([...kinds].toSorted(), ["live", "stored"]);
      flight.seal();
      await flight.landed;
      assert.equal(slices.bytes, 0, "nothing of it stays in memory");
    });
  });

  it("keeps the file open for a reader that joins after all others left, until it is sealed and left", async () => {
    await withFile(async (fd) => {
      const flight = new Flight(new AnswerCheck("sha1"), new Slices());
      let landed = false;
      void flight.landed.then(() => (landed = true));
      const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
      const reader = flight.join();
      const run = flight.run(chunksOf(answerOf(50_000), 1500), fd);
      await drain(reader);
      await run;
      reader.leave();
      await turn();
      assert.equal(landed, false, "the answer is being stored: it can still be found");
      assert.equal(flight.joinable, true);
      const late = flight.join();
      flight.seal();
      await turn();
      assert.equal(landed, false, "somebody reads");
      assert.equal(flight.joinable, false);
      late.leave();
      await turn();
      assert.equal(landed, true);
    });
  });

  it("a cut answer ends at the border of a packet, and tells where an error belongs", async () => {
    await withFile(async (fd) => {
      const flight = new Flight(new AnswerCheck("sha1"), new Slices());
      const reader = flight.join();
      const run = flight.run(chunksOf(answerOf(200_000), 1500, 90_000), fd);
      await assert.rejects(drain(reader), (error) => error instanceof FlightCut && error.inPackfile);
      const outcome = await run;
      assert.equal(outcome.storable, false);
      assert.equal(flight.joinable, false);
    });
  });

  it("an error before the first pack byte is not shared", async () => {
    await withFile(async (fd) => {
      const flight = new Flight(new AnswerCheck("sha1"), new Slices());
      const reader = flight.join();
      const run = flight.run(chunksOf(encodeErrorLine("not our ref"), 3), fd);
      assert.equal(await flight.shared, false);
      assert.equal(flight.joinable, false);
      assert.ok((await drain(reader)).equals(encodeErrorLine("not our ref")));
      await run;
    });
  });

  it("a disk that fails in the middle is not noticed by the readers that are there", async () => {
    await withFile(async (fd) => {
      const answer = answerOf(300_000);
      const flight = new Flight(new AnswerCheck("sha1"), new Slices());
      const readers = [drain(flight.join()), drain(flight.join())];
      // A descriptor that can be read and not written stands for a full disk.
      const readOnly = await open(`/proc/self/fd/${fd}`, "r").catch(() => undefined);
      const outcome = await flight.run(chunksOf(answer, 5000), readOnly?.fd ?? -1);
      for (const read of readers) assert.ok((await read).equals(answer));
      assert.equal(outcome.storable, false);
      assert.notEqual(outcome.diskError, undefined);
      assert.equal(flight.joinable, false);
      await readOnly?.close();
    });
  });

  it("without a file the slowest present reader sets the pace, and memory stays bounded", async () => {
    const answer = answerOf(20_000_000);
    const flight = new Flight(new AnswerCheck("sha1"), new Slices());
    let given = 0;
    async function* counted(): AsyncGenerator<Buffer> {
      for await (const chunk of chunksOf(answer, 1_000_000)) {
        given += chunk.length;
        yield chunk;
      }
    }
    const reader = flight.join();
    const run = flight.run(counted(), undefined);
    for (let n = 0; n < 100; n++) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(given < 11_000_000, `${given} bytes taken`);
    assert.ok((await drain(reader)).equals(answer));
    await run;
  });

  it("is cancelled when the last reader leaves, not before", () => {
    const flight = new Flight(new AnswerCheck("sha1"), new Slices());
    const [one, two] = [flight.join(), flight.join()];
    one.leave();
    one.leave();
    assert.equal(flight.signal.aborted, false);
    two.leave();
    assert.equal(flight.signal.aborted, true);
  });
});
