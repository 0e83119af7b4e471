import assert from "node:assert/strict";
import { it } from "node:test";
import type { Store } from "../store.ts";

const LONG_MS = 60_000;

export function sharedFetchCases(store: () => Store): void {
  const begun = async (key: string, holder: string, ttlMs = LONG_MS): Promise<number> => {
    const start = await store().sharedFetches.begin(key, holder, ttlMs);
    assert.equal(start.kind, "begun");
    return start.kind === "begun" ? start.fence : 0;
  };

  it("of instances that begin one fetch, one fetches and the others see it", async () => {
    const { sharedFetches } = store();
    const starts = await Promise.all(
      ["one", "two", "three"].map(async (holder) => sharedFetches.begin("k", holder, LONG_MS)),
    );
    const [leader, ...more] = starts.filter(({ kind }) => kind === "begun");
    assert.deepEqual(more, []);
    assert.ok(leader?.kind === "begun");
    for (const each of starts) {
      if (each.kind === "begun") continue;
      const { state, fence, bytes, remainingMs } = each.fetch;
      assert.deepEqual({ state, fence, bytes }, { state: "fetching", fence: leader.fence, bytes: 0 });
      assert.ok(remainingMs > 0);
    }
    assert.equal((await sharedFetches.begin("other", "two", LONG_MS)).kind, "begun");
  });

  it("progress is seen by others, and tells whether one of them waits", async () => {
    const { sharedFetches } = store();
    const fence = await begun("k", "one");
    const progress = { state: "fetching", bytes: 10, expectedBytes: undefined } as const;
    assert.deepEqual(await sharedFetches.progress("k", fence, progress, LONG_MS), { isAwaited: false });
    await sharedFetches.markAwaited("k", fence + 1);
    assert.deepEqual(await sharedFetches.progress("k", fence, progress, LONG_MS), { isAwaited: false });
    await sharedFetches.markAwaited("k", fence);
    const next = { state: "uploading", bytes: 2 ** 40, expectedBytes: 2 ** 41 } as const;
    assert.deepEqual(await sharedFetches.progress("k", fence, next, LONG_MS), { isAwaited: true });
    const found = await sharedFetches.find("k");
    assert.ok(found);
    const { key, holder, state, bytes, expectedBytes, elapsedMs } = found;
    assert.deepEqual({ key, holder, state, bytes, expectedBytes }, { key: "k", holder: "one", ...next });
    assert.ok(elapsedMs >= 0);
    assert.equal(await sharedFetches.find("other"), undefined);
  });

  it("a fetch that is shared is not repeated while its end is kept", async () => {
    const { sharedFetches } = store();
    const fence = await begun("k", "one");
    await sharedFetches.end("k", fence, "shared", LONG_MS);
    const start = await sharedFetches.begin("k", "two", LONG_MS);
    assert.ok(start.kind === "other");
    assert.equal(start.fetch.state, "shared");
    assert.equal((await sharedFetches.begin("k", "two", LONG_MS, fence - 1)).kind, "other");
    const again = await sharedFetches.begin("k", "two", LONG_MS, fence);
    assert.ok(again.kind === "begun" && again.fence > fence);
    assert.equal((await sharedFetches.begin("k", "three", LONG_MS, fence)).kind, "other");
  });

  it("after a failure, or if nothing is shared, the next instance fetches", async () => {
    const { sharedFetches } = store();
    let last = 0;
    for (const state of ["failed", "private"] as const) {
      const fence = await begun("k", "one");
      assert.ok(fence > last);
      last = fence;
      await sharedFetches.end("k", fence, state, 0);
      assert.equal((await sharedFetches.find("k"))?.state, state);
    }
    assert.ok((await begun("k", "two")) > last);
  });

  it("an instance that does not report loses the fetch, and finds that out", async () => {
    const { sharedFetches } = store();
    const first = await begun("k", "one", 0);
    assert.ok(((await sharedFetches.find("k"))?.remainingMs ?? 1) <= 0);
    const second = await begun("k", "two");
    assert.ok(second > first);
    const progress = { state: "fetching", bytes: 1, expectedBytes: undefined } as const;
    assert.equal(await sharedFetches.progress("k", first, progress, LONG_MS), undefined);
    await sharedFetches.end("k", first, "failed", 0);
    const found = await sharedFetches.find("k");
    assert.deepEqual([found?.state, found?.holder, found?.bytes], ["fetching", "two", 0]);
  });

  it("progress extends a fetch, and after its end there is no progress", async () => {
    const { sharedFetches } = store();
    const fence = await begun("k", "one", 1000);
    const progress = { state: "fetching", bytes: 1, expectedBytes: undefined } as const;
    await sharedFetches.progress("k", fence, progress, LONG_MS);
    assert.ok(((await sharedFetches.find("k"))?.remainingMs ?? 0) > 1000);
    await sharedFetches.end("k", fence, "shared", LONG_MS);
    assert.equal(await sharedFetches.progress("k", fence, progress, LONG_MS), undefined);
    assert.equal((await sharedFetches.find("k"))?.state, "shared");
  });

  it("records that ended long ago are deleted, the others stay", async () => {
    const { sharedFetches } = store();
    await sharedFetches.end("ended", await begun("ended", "one"), "failed", 0);
    await begun("running", "one");
    assert.equal(await sharedFetches.deleteEnded(LONG_MS), 0);
    assert.equal(await sharedFetches.deleteEnded(0), 1);
    assert.equal(await sharedFetches.find("ended"), undefined);
    assert.equal((await sharedFetches.find("running"))?.state, "fetching");
  });
}
