import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { emptyStore } from "./empty-store.ts";

describe("emptyStore", () => {
  it("has nothing, and takes nothing", async () => {
    const signal = new AbortController().signal;
    assert.deepEqual(await emptyStore.list("", { signal }), []);
    await assert.rejects(emptyStore.read("k", { signal }), { code: "not_found" });
    await assert.rejects(emptyStore.write("k", new Map(), { ifVersion: 0, signal }), { code: "not_found" });
  });

  it("its watch ends with the signal, also with one that has fired before", async () => {
    const stop = new AbortController();
    const waiting = emptyStore.watch(stop.signal)[Symbol.asyncIterator]().next();
    stop.abort();
    assert.equal((await waiting).done, true);
    assert.equal((await emptyStore.watch(stop.signal)[Symbol.asyncIterator]().next()).done, true);
  });
});
