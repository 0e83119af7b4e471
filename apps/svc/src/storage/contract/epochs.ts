import assert from "node:assert/strict";
import { it } from "node:test";
import type { Store } from "../store.ts";
import { repositoryRecord } from "./records.ts";

const KEY = "github.com/acme/widgets";
const OTHER = "github.com/acme/gadgets";

/** Epochs, and the counts by which instances learn about changes. */
export function epochCases(store: () => Store): void {
  it("an epoch is 0 until it is raised, and each raise is higher", async () => {
    const { epochs } = store();
    assert.equal(await epochs.get(KEY), 0);
    const first = await epochs.raise(KEY);
    const second = await epochs.raise(KEY);
    assert.ok(0 < first && first < second);
    assert.equal(await epochs.get(KEY), second);
    assert.equal(await epochs.get(OTHER), 0);
    assert.deepEqual([...(await epochs.all())], [[KEY, second]]);
  });

  it("of raises that race, each gets an epoch of its own", async () => {
    const { epochs } = store();
    const raised = await Promise.all([1, 2, 3, 4].map(async () => epochs.raise(KEY)));
    assert.equal(new Set(raised).size, 4);
    assert.equal(await epochs.get(KEY), Math.max(...raised));
  });

  it("a higher epoch is adopted, a lower one is not, and the next raise is above it", async () => {
    const { epochs } = store();
    const far = Date.now() + 3_600_000;
    assert.equal(await epochs.adopt(KEY, far), far);
    assert.equal(await epochs.adopt(KEY, far - 1), far);
    assert.equal(await epochs.raise(KEY), far + 1);
    assert.equal(await epochs.adopt(OTHER, 0), 0);
    const raised = await epochs.raise(OTHER);
    assert.deepEqual(
      new Map(await epochs.all()),
      new Map([
        [KEY, far + 1],
        [OTHER, raised],
      ]),
    );
  });

  it("changes of the list and of epochs are counted, and nothing else is", async () => {
    const { changes, cachedRepositories, epochs } = store();
    let counts = await changes.counts();
    assert.deepEqual(counts, { repositories: 0, epochs: 0 });
    const changed = async (action: () => Promise<unknown>): Promise<readonly string[]> => {
      const before = counts;
      await action();
      counts = await changes.counts();
      return (["repositories", "epochs"] as const).filter((topic) => counts[topic] > before[topic]);
    };
    const record = repositoryRecord();
    const next = { ...record, enabled: false, version: 2 };
    assert.deepEqual(await changed(async () => cachedRepositories.insert(record)), ["repositories"]);
    assert.deepEqual(await changed(async () => cachedRepositories.insert(record).catch(() => 0)), []);
    assert.deepEqual(await changed(async () => cachedRepositories.update(next)), ["repositories"]);
    assert.deepEqual(await changed(async () => cachedRepositories.update(next)), []);
    assert.deepEqual(await changed(async () => cachedRepositories.delete(record.id)), ["repositories"]);
    assert.deepEqual(await changed(async () => cachedRepositories.delete(record.id)), []);
    assert.deepEqual(await changed(async () => epochs.raise(KEY)), ["epochs"]);
    assert.deepEqual(await changed(async () => epochs.adopt(KEY, 1)), []);
    assert.deepEqual(await changed(async () => epochs.adopt(OTHER, 7)), ["epochs"]);
    assert.deepEqual(await changed(async () => epochs.get(KEY)), []);
  });

  it("listening ends with its signal", async () => {
    const stop = new AbortController();
    const listening = store().changes.listen(() => undefined, stop.signal);
    stop.abort();
    await listening;
    await store().changes.listen(() => undefined, stop.signal);
  });
}
