import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EarlyFlushes, type Flushable } from "./early-flushes.ts";

/** A file whose flushes end when the test says so. */
class PlayedFile implements Flushable {
  readonly flushes: PromiseWithResolvers<void>[] = [];

  datasync(): Promise<void> {
    const flush = Promise.withResolvers<void>();
    this.flushes.push(flush);
    return flush.promise;
  }
}

const turn = async (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("EarlyFlushes", () => {
  it("flushes after a number of bytes, over all files, one at a time", async () => {
    const flushes = new EarlyFlushes(10);
    const [one, two] = [new PlayedFile(), new PlayedFile()];
    flushes.wrote(one, 5);
    flushes.wrote(two, 4);
    assert.equal(one.flushes.length + two.flushes.length, 0);
    flushes.wrote(two, 1);
    flushes.wrote(one, 100);
    assert.deepEqual([one.flushes.length, two.flushes.length], [0, 1]);
    two.flushes[0]?.resolve();
    await turn();
    flushes.wrote(one, 1);
    assert.deepEqual([one.flushes.length, two.flushes.length], [1, 1]);
  });

  it("a file is closed after its flush, and waits for no other", async () => {
    const flushes = new EarlyFlushes(1);
    const [one, two] = [new PlayedFile(), new PlayedFile()];
    flushes.wrote(one, 1);
    await flushes.settled(two);
    let isSettled = false;
    const settled = flushes.settled(one).then(() => (isSettled = true));
    await turn();
    assert.equal(isSettled, false);
    one.flushes[0]?.resolve();
    await settled;
  });

  it("a failed flush fails every file from then on, because the kernel reports it once", async () => {
    const flushes = new EarlyFlushes(1);
    const [one, two] = [new PlayedFile(), new PlayedFile()];
    flushes.wrote(one, 1);
    const full = new Error("no space");
    one.flushes[0]?.reject(full);
    await assert.rejects(flushes.settled(one), full);
    await assert.rejects(flushes.settled(two), full);
  });
});
