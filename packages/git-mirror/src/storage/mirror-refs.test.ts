import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Ref } from "@devplat/git-store";
import { mergeRefs } from "./mirror-refs.ts";

const oid = (digit: string): string => digit.repeat(40);
const ref = (name: string, digit: string): Ref => ({ name, oid: oid(digit) });
const map = (...refs: Ref[]): Map<string, Ref> => new Map(refs.map((one) => [one.name, one]));

describe("mergeRefs", () => {
  it("keeps what was there, takes what was shown over it, and names wants that have no name", () => {
    const merged = mergeRefs(
      map(ref("refs/heads/main", "a"), ref("refs/heads/old", "b")),
      [ref("refs/heads/main", "c"), ref("HEAD", "c")],
      [oid("c"), oid("d")],
    );
    assert.deepEqual(
      merged,
      map(ref("refs/heads/main", "c"), ref("refs/heads/old", "b"), ref(`refs/wanted/${oid("d")}`, "d")),
    );
  });

  it("a name that became a folder, or was one, loses its old meaning", () => {
    const before = map(ref("refs/heads/a", "a"), ref("refs/heads/b/c", "b"));
    const merged = mergeRefs(before, [ref("refs/heads/a/x", "c"), ref("refs/heads/b", "d")], []);
    assert.deepEqual([...merged.keys()].toSorted(), ["refs/heads/a/x", "refs/heads/b"]);
  });

  it("passes over names that git does not allow", () => {
    assert.equal(
      mergeRefs(new Map(), [ref("refs/heads/../x", "a"), ref("refs/heads/x.lock", "a")], []).size,
      0,
    );
  });
});
