import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Ref } from "@devplat/git-store";
import { mergeRefs } from "./refs.ts";

const oid = (digit: string): string => digit.repeat(40);
const ref = (name: string, digit: string): Ref => ({ name, oid: oid(digit) });
const map = (...refs: Ref[]): Map<string, Ref> => new Map(refs.map((one) => [one.name, one]));

describe("mergeRefs", () => {
  it("keeps refs, takes shown ones, and adds a ref for each want without one", () => {
    const merged = mergeRefs(
      map(ref("refs/heads/main", "a"), ref("refs/heads/old", "b")),
      [ref("refs/heads/main", "c"), ref("HEAD", "c")],
      [oid("c"), oid("d")],
      () => false,
    );
    assert.deepEqual(
      merged,
      map(ref("refs/heads/main", "c"), ref("refs/heads/old", "b"), ref(`refs/wanted/${oid("d")}`, "d")),
    );
  });

  it("a shown ref replaces refs that are its folders or are below it", () => {
    const before = map(ref("refs/heads/a", "a"), ref("refs/heads/b/c", "b"));
    const merged = mergeRefs(before, [ref("refs/heads/a/x", "c"), ref("refs/heads/b", "d")], [], () => false);
    assert.deepEqual([...merged.keys()].toSorted(), ["refs/heads/a/x", "refs/heads/b"]);
  });

  it("skips names that git does not allow", () => {
    assert.equal(
      mergeRefs(new Map(), [ref("refs/heads/../x", "a"), ref("refs/heads/x.lock", "a")], [], () => false)
        .size,
      0,
    );
  });
});
