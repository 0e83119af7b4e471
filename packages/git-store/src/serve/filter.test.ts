import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFilter } from "./filter.ts";

test("parseFilter reads every filter that git's upload-pack offers, but sparse", () => {
  assert.deepEqual(parseFilter("blob:none"), { kind: "blob-none" });
  assert.deepEqual(parseFilter("blob:limit=0"), { kind: "blob-limit", bytes: 0 });
  assert.deepEqual(parseFilter("blob:limit=10k"), { kind: "blob-limit", bytes: 10_240 });
  assert.deepEqual(parseFilter("blob:limit=0x10M"), { kind: "blob-limit", bytes: 16 * 2 ** 20 });
  assert.deepEqual(parseFilter("blob:limit=010"), { kind: "blob-limit", bytes: 8 });
  assert.deepEqual(parseFilter("tree:3"), { kind: "tree-depth", depth: 3 });
  assert.deepEqual(parseFilter("object:type=tag"), { kind: "object-type", type: "tag" });
  assert.equal(parseFilter("sparse:oid=main:filter"), undefined);
});

test("parseFilter reads combine: with percent-encoding, nested too", () => {
  const both = {
    kind: "combine",
    filters: [
      { kind: "tree-depth", depth: 2 },
      { kind: "blob-limit", bytes: 5 },
    ],
  };
  assert.deepEqual(parseFilter("combine:tree:2+blob:limit=5"), both);
  assert.deepEqual(parseFilter("combine:tree%3A2+blob%3alimit%3d5"), both);
  assert.deepEqual(parseFilter("combine:combine:tree:2%2Bblob:limit=5"), {
    kind: "combine",
    filters: [both],
  });
});

test("parseFilter refuses what is malformed", () => {
  for (const spec of [
    "",
    "blob:none ",
    "blob:limit=",
    "blob:limit=-1",
    "blob:limit=1t",
    "tree:",
    "tree:x",
    "object:type=blobs",
    "combine:",
    "combine:tree:1+",
    "combine:tree:1+blob:limit=1 ",
    "combine:tree:1+%zz",
    "combine:tree:1+~",
    `combine:${"tree:1+".repeat(23)}tree:1`,
    "blob:limit=99999999999999999g",
  ]) {
    assert.equal(parseFilter(spec), undefined, JSON.stringify(spec));
  }
});
