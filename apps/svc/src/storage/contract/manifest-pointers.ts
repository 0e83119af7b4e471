import assert from "node:assert/strict";
import { it } from "node:test";
import type { ManifestPointer } from "../coordination-store.ts";
import type { Store } from "../store.ts";

const KEY = "github.com/acme/widgets";

export function manifestPointerCases(store: () => Store): void {
  const pointer = (generation: number, fence = 0): ManifestPointer => ({
    name: `manifest-${generation}`,
    generation,
    fence,
  });

  it("a manifest pointer is replaced only from the generation that was read", async () => {
    const { manifestPointers } = store();
    assert.equal(await manifestPointers.get(KEY), undefined);
    assert.equal(await manifestPointers.replace(KEY, pointer(2), 1), false);
    assert.equal(await manifestPointers.replace(KEY, pointer(1), undefined), true);
    assert.equal(await manifestPointers.replace(KEY, pointer(1), undefined), false);
    assert.equal(await manifestPointers.replace(KEY, pointer(2), 1), true);
    assert.equal(await manifestPointers.replace(KEY, pointer(3), 1), false);
    assert.deepEqual(await manifestPointers.get(KEY), pointer(2));
    assert.equal(await manifestPointers.get("other"), undefined);
  });

  it("a lower fencing number does not replace a manifest pointer", async () => {
    const { manifestPointers } = store();
    const fence = Date.now();
    assert.equal(await manifestPointers.replace(KEY, pointer(1, fence), undefined), true);
    assert.equal(await manifestPointers.replace(KEY, pointer(2, fence - 1), 1), false);
    assert.equal(await manifestPointers.replace(KEY, pointer(2, fence), 1), true);
    assert.equal(await manifestPointers.replace(KEY, pointer(3, fence + 1), 2), true);
    assert.deepEqual(await manifestPointers.get(KEY), pointer(3, fence + 1));
  });

  it("of replacements from one generation that race, exactly one gets true", async () => {
    const { manifestPointers } = store();
    for (const expected of [undefined, 1, 2]) {
      const won = await Promise.all(
        [1, 2, 3, 4].map(async () => manifestPointers.replace(KEY, pointer((expected ?? 0) + 1), expected)),
      );
      assert.equal(won.filter(Boolean).length, 1);
    }
  });
}
