import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { untilAborted } from "./until-aborted.ts";

describe("untilAborted", () => {
  it("gives the result or the error of the work", async () => {
    const { signal } = new AbortController();
    assert.equal(await untilAborted(Promise.resolve(1), signal), 1);
    assert.equal(await untilAborted(Promise.resolve(1), undefined), 1);
    await assert.rejects(untilAborted(Promise.reject(new Error("failed")), signal), /failed/);
  });

  it("ends with the reason of the signal, and ignores a later failure", async () => {
    const work = Promise.withResolvers<number>();
    const ended = new AbortController();
    const waiting = untilAborted(work.promise, ended.signal);
    ended.abort(new Error("left"));
    await assert.rejects(waiting, /left/);
    await assert.rejects(untilAborted(work.promise, ended.signal), /left/);
    work.reject(new Error("too late"));
    await assert.rejects(work.promise, /too late/);
  });
});
