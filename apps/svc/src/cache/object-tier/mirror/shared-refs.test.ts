import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Ref } from "@devplat/git-store";
import { isSameRefs, mergeSharedRefs, youngRefs, type RefMerge } from "./shared-refs.ts";

const oid = (digit: string): string => digit.repeat(40);
/** Refs from `name=digit` pairs. */
const refs = (...pairs: string[]): Ref[] =>
  pairs.map((pair) => {
    const [name = "", digit = ""] = pair.split("=");
    return { name: name.startsWith("refs/") ? name : `refs/heads/${name}`, oid: oid(digit) };
  });
const map = (...pairs: string[]): Map<string, Ref> => new Map(refs(...pairs).map((ref) => [ref.name, ref]));

function merge(given: Partial<RefMerge>): string[] {
  const merged = mergeSharedRefs({
    base: undefined,
    local: new Map(),
    shared: [],
    shown: [],
    isHere: () => true,
    ...given,
  });
  return [...merged.values()].map((ref) => `${ref.name.replace("refs/heads/", "")}=${ref.oid[0]}`).toSorted();
}

describe("mergeSharedRefs", () => {
  it("without a base, the shared value counts, and refs of both sides stay", () => {
    const given = { local: map("a=1", "b=2"), shared: refs("a=3", "c=4") };
    assert.deepEqual(merge(given), ["a=3", "b=2", "c=4"]);
  });

  it("with a base, each side's changes and deletions count, and of two the local one", () => {
    const base = map("same=1", "ours=1", "theirs=1", "both=1", "gone=1", "dropped=1");
    const local = map("same=1", "ours=2", "theirs=1", "both=2", "dropped=1", "new=5");
    const shared = refs("same=1", "ours=1", "theirs=3", "both=3", "gone=1", "added=6");
    assert.deepEqual(merge({ base, local, shared }), [
      "added=6",
      "both=2",
      "new=5",
      "ours=2",
      "same=1",
      "theirs=3",
    ]);
  });

  it("a ref that the code host showed counts most, if its object is here", () => {
    const given = { local: map("a=1"), shared: refs("a=2", "b=2"), shown: refs("a=3", "b=4") };
    assert.deepEqual(merge({ ...given, isHere: (each) => each !== oid("4") }), ["a=3", "b=2"]);
  });

  it("a wanted object that is not here any more loses its ref, and other refs stay", () => {
    const local = map(`refs/wanted/${oid("1")}=1`, "b=2");
    assert.deepEqual(merge({ local, isHere: () => false }), ["b=2"]);
  });

  it("a shared ref replaces one whose name is its folder", () => {
    assert.deepEqual(merge({ local: map("a=1"), shared: refs("a/b=2") }), ["a/b=2"]);
  });
});

describe("youngRefs, isSameRefs", () => {
  it("drop what is too old, and compare without order", () => {
    const retained = [1, 5, 9].map((since) => ({ oid: oid(String(since)), since }));
    assert.deepEqual(youngRefs(retained, 10, 6), retained.slice(1));
    assert.ok(isSameRefs(refs("a=1", "b=2"), refs("b=2", "a=1")));
    assert.ok(!isSameRefs(refs("a=1", "b=2"), refs("a=1", "b=3")));
    assert.ok(!isSameRefs(refs("a=1"), refs("a=1", "b=2")));
  });
});
