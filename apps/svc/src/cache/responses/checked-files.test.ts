import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import { CheckedFiles, RECHECK_MS, type FileTimes, type NamedFile } from "./checked-files.ts";

/** A time of modification, in milliseconds since the epoch. */
const MODIFIED = 1_700_000_000_123;

/** Times of a file. Both are the same, unless a program has set the first one back. */
const at = (mtimeMs: number, ctimeMs = mtimeMs): FileTimes => ({ mtimeMs, ctimeMs });
const isWhole = (): Promise<boolean> => Promise.resolve(true);
const isDamaged = (): Promise<boolean> => Promise.resolve(false);

const named = (name: string, identity = `file of ${name}`): NamedFile => ({ name, identity });

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
    const asked = [1, 2, 3].map(async () => files.isSound(named("a"), at(MODIFIED), check));
    assert.equal(runs.length, 1);
    runs[0]?.resolve(true);
    assert.deepEqual(await Promise.all(asked), [true, true, true]);
    assert.equal(await files.isSound(named("a"), at(MODIFIED), check), true);
    assert.equal(runs.length, 1);
  });

  it("a damaged file is damaged for all who waited; the next caller reads it again", async () => {
    const files = new CheckedFiles(clock);
    const { runs, check } = checks();
    const asked = [1, 2].map(async () => files.isSound(named("a"), at(MODIFIED), check));
    runs[0]?.resolve(false);
    assert.deepEqual(await Promise.all(asked), [false, false]);
    const again = files.isSound(named("a"), at(MODIFIED), check);
    runs[1]?.reject(new Error("EIO"));
    await assert.rejects(again, /EIO/);
    const last = files.isSound(named("a"), at(MODIFIED), check);
    runs[2]?.resolve(true);
    assert.equal(await last, true);
  });

  it("one caller repeats an old check; the others go on without waiting", async () => {
    const files = new CheckedFiles(clock);
    files.written(named("a"), MODIFIED);
    const { runs, check } = checks();
    now += RECHECK_MS - 1;
    assert.equal(await files.isSound(named("a"), at(MODIFIED), check), true);
    assert.equal(runs.length, 0);
    now += 1;
    const first = files.isSound(named("a"), at(MODIFIED), check);
    assert.equal(runs.length, 1);
    assert.equal(await files.isSound(named("a"), at(MODIFIED), check), true);
    runs[0]?.resolve(true);
    assert.equal(await first, true);
    assert.equal(await files.isSound(named("a"), at(MODIFIED), check), true);
    assert.equal(runs.length, 1);
  });

  it("a check does not apply to a file that is written or forgotten during it", async () => {
    const files = new CheckedFiles(clock);
    const { runs, check } = checks();
    const damaged = files.isSound(named("a"), at(MODIFIED), check);
    files.written(named("a"), MODIFIED);
    runs[0]?.resolve(false);
    assert.equal(await damaged, false);
    assert.equal(await files.isSound(named("a"), at(MODIFIED), check), true);
    files.forget("a");
    const before = files.isSound(named("a"), at(MODIFIED), check);
    files.clear();
    runs[1]?.resolve(true);
    assert.equal(await before, true);
    const after = files.isSound(named("a"), at(MODIFIED), check);
    assert.equal(runs.length, 3);
    runs[2]?.resolve(true);
    await after;
  });

  it("a file is unchanged as long as only this process sets its time of modification", async () => {
    const files = new CheckedFiles(clock);
    files.written(named("a"), MODIFIED);
    assert.ok(files.unchanged(named("a")));
    files.seen(named("a"), at(MODIFIED));
    files.touched(named("a"), MODIFIED + 1000);
    // Another request can see the file before and after the new time is set.
    for (const modified of [MODIFIED, MODIFIED + 1000]) {
      files.seen(named("a"), at(modified));
      assert.ok(files.unchanged(named("a")));
    }
    files.touched(named("a"), MODIFIED + 2000);
    files.seen(named("a"), at(MODIFIED + 1500));
    assert.equal(files.unchanged(named("a")), undefined);
    files.touched(named("a"), MODIFIED + 3000);
    files.seen(named("a"), at(MODIFIED + 3000));
    assert.equal(files.unchanged(named("a")), undefined);
    // It is checked by its next user.
    assert.equal(await files.isSound(named("a"), at(MODIFIED + 4000), isWhole), true);
    assert.ok(files.unchanged(named("a")));
    const isUnchanged = files.unchanged(named("a"));
    files.forget("a");
    assert.equal(files.unchanged(named("a")), undefined);
    // The file of a request that has it open. With unknown times, it is checked.
    assert.equal(await isUnchanged?.(at(MODIFIED + 4000), false, isDamaged), true);
    assert.equal(await isUnchanged?.(at(MODIFIED + 4000), true, isWhole), true);
    assert.equal(await isUnchanged?.(at(MODIFIED + 4001), false, isWhole), true);
    assert.equal(await isUnchanged?.(at(MODIFIED + 4001), false, isDamaged), true);
    assert.equal(await isUnchanged?.(at(MODIFIED + 4002), false, isDamaged), false);
    assert.equal(await isUnchanged?.(at(MODIFIED + 4001), false, isDamaged), false);
  });

  it("a time of modification that was set back does not hide a change", async () => {
    const files = new CheckedFiles(clock);
    files.written(named("a"), MODIFIED);
    files.seen(named("a"), at(MODIFIED, MODIFIED + 1));
    assert.ok(files.unchanged(named("a")));
    files.seen(named("a"), at(MODIFIED, MODIFIED + 500));
    assert.equal(files.unchanged(named("a")), undefined);
    const times = at(MODIFIED, MODIFIED + 500);
    assert.equal(await files.isSound(named("a"), times, isDamaged), false);
    assert.equal(await files.isSound(named("a"), times, isWhole), true);
    assert.ok(files.unchanged(named("a")));
  });

  it("a file that was replaced while it is open says nothing about the new one", async () => {
    const files = new CheckedFiles(clock);
    files.written(named("a", "old"), MODIFIED);
    files.written(named("a", "new"), MODIFIED + 10);
    files.seen(named("a", "old"), at(MODIFIED));
    files.touched(named("a", "old"), MODIFIED + 20);
    assert.equal(files.unchanged(named("a", "old")), undefined);
    assert.equal(await files.unchanged(named("a", "new"))?.(at(MODIFIED + 10), false, isDamaged), true);
    // The old one is read again, because nothing is known of it any more. So is the new one then.
    const { runs, check } = checks();
    for (const identity of ["old", "new"]) {
      const sound = files.isSound(named("a", identity), at(MODIFIED + 10), check);
      runs.at(-1)?.resolve(true);
      assert.equal(await sound, true);
    }
    assert.equal(runs.length, 2);
    assert.ok(files.unchanged(named("a", "new")));
  });

  it("a file that was changed while it was checked is not unchanged", async () => {
    const files = new CheckedFiles(clock);
    const { runs, check } = checks();
    const sound = files.isSound(named("a"), at(MODIFIED), check);
    files.seen(named("a"), at(MODIFIED + 5));
    runs[0]?.resolve(true);
    assert.equal(await sound, true);
    assert.equal(files.unchanged(named("a")), undefined);
  });
});
