import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import { CheckedFiles, RECHECK_MS } from "./checked-files.ts";

/** A time of modification, in milliseconds since the epoch. */
const MODIFIED = 1_700_000_000_123;

describe("CheckedFiles", () => {
  let now = 0;
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    sleep: () => Promise.reject(new Error("nothing sleeps here")),
  };
  /** A check that ends when it is told how. */
  const checks = (): { runs: PromiseWithResolvers<boolean>[]; check: () => Promise<boolean> } => {
    const runs: PromiseWithResolvers<boolean>[] = [];
    return {
      runs,
      check: () => {
        const run = Promise.withResolvers<boolean>();
        runs.push(run);
        return run.promise;
      },
    };
  };

  it("callers during the first check wait for it; later ones read nothing", async () => {
    const files = new CheckedFiles(clock);
    const { runs, check } = checks();
    const asked = [1, 2, 3].map(async () => files.isSound("a", MODIFIED, check));
    assert.equal(runs.length, 1);
    runs[0]?.resolve(true);
    assert.deepEqual(await Promise.all(asked), [true, true, true]);
    assert.equal(await files.isSound("a", MODIFIED, check), true);
    assert.equal(runs.length, 1);
  });

  it("a damaged file is damaged for all who waited; the next caller reads it again", async () => {
    const files = new CheckedFiles(clock);
    const { runs, check } = checks();
    const asked = [1, 2].map(async () => files.isSound("a", MODIFIED, check));
    runs[0]?.resolve(false);
    assert.deepEqual(await Promise.all(asked), [false, false]);
    const again = files.isSound("a", MODIFIED, check);
    runs[1]?.reject(new Error("EIO"));
    await assert.rejects(again, /EIO/);
    const last = files.isSound("a", MODIFIED, check);
    runs[2]?.resolve(true);
    assert.equal(await last, true);
  });

  it("one caller repeats an old check; the others go on without waiting", async () => {
    const files = new CheckedFiles(clock);
    files.written("a", MODIFIED);
    const { runs, check } = checks();
    now += RECHECK_MS - 1;
    assert.equal(await files.isSound("a", MODIFIED, check), true);
    assert.equal(runs.length, 0);
    now += 1;
    const first = files.isSound("a", MODIFIED, check);
    assert.equal(runs.length, 1);
    assert.equal(await files.isSound("a", MODIFIED, check), true);
    runs[0]?.resolve(true);
    assert.equal(await first, true);
    assert.equal(await files.isSound("a", MODIFIED, check), true);
    assert.equal(runs.length, 1);
  });

  it("a check does not apply to a file that is written or forgotten during it", async () => {
    const files = new CheckedFiles(clock);
    const { runs, check } = checks();
    const damaged = files.isSound("a", MODIFIED, check);
    files.written("a", MODIFIED);
    runs[0]?.resolve(false);
    assert.equal(await damaged, false);
    assert.equal(await files.isSound("a", MODIFIED, check), true);
    files.forget("a");
    const before = files.isSound("a", MODIFIED, check);
    files.clear();
    runs[1]?.resolve(true);
    assert.equal(await before, true);
    const after = files.isSound("a", MODIFIED, check);
    assert.equal(runs.length, 3);
    runs[2]?.resolve(true);
    await after;
  });

  it("a file is unchanged as long as only this process sets its time of modification", async () => {
    const files = new CheckedFiles(clock);
    files.written("a", MODIFIED);
    assert.ok(files.unchanged("a"));
    files.seen("a", MODIFIED);
    files.touched("a", MODIFIED + 1000);
    // Another request can see the file before and after the new time is set.
    for (const modified of [MODIFIED, MODIFIED + 1000]) {
      files.seen("a", modified);
      assert.ok(files.unchanged("a"));
    }
    files.touched("a", MODIFIED + 2000);
    files.seen("a", MODIFIED + 1500);
    assert.equal(files.unchanged("a"), undefined);
    files.touched("a", MODIFIED + 3000);
    files.seen("a", MODIFIED + 3000);
    assert.equal(files.unchanged("a"), undefined);
    now += RECHECK_MS;
    assert.equal(await files.isSound("a", MODIFIED + 4000, () => Promise.resolve(true)), true);
    assert.ok(files.unchanged("a"));
    const isUnchanged = files.unchanged("a");
    files.forget("a");
    assert.equal(files.unchanged("a"), undefined);
    // The file of a request that has it open.
    assert.equal(isUnchanged?.(MODIFIED + 4000), true);
    assert.equal(isUnchanged?.(MODIFIED + 4001), false);
  });

  it("a file that was changed while it was checked is not unchanged", async () => {
    const files = new CheckedFiles(clock);
    const { runs, check } = checks();
    const sound = files.isSound("a", MODIFIED, check);
    files.seen("a", MODIFIED + 5);
    runs[0]?.resolve(true);
    assert.equal(await sound, true);
    assert.equal(files.unchanged("a"), undefined);
  });
});
