import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { git, temporaryFolder } from "../../test/git.test-kit.ts";
import { ObjectDatabase } from "../object-database.ts";
import { ReachabilityIndex } from "../reachability/reachability-index.ts";

const OID = `ab${"1".repeat(38)}`;

const FAULTS: [name: string, code: string, bytes: Buffer][] = [
  ["no zlib stream", "corrupt_zlib", Buffer.from("plain")],
  ["nothing", "corrupt_zlib", Buffer.alloc(0)],
  ["a cut stream", "corrupt_zlib", deflateSync("blob 3\0abc").subarray(0, -2)],
  ["no header", "corrupt_object", deflateSync("abc")],
  ["an unknown type", "corrupt_object", deflateSync("blub 3\0abc")],
  ["a wrong size", "corrupt_object", deflateSync("blob 4\0abc")],
  ["a size with a leading zero", "corrupt_object", deflateSync("blob 03\0abc")],
  ["a size above the content's by far", "corrupt_object", deflateSync("blob 99999\0abc")],
  ["a size that is too large for memory", "too_large", deflateSync("blob 9000000000\0abc")],
  ["a size that is not exact", "corrupt_object", deflateSync("blob 90000000000000000\0abc")],
  ["a negative size", "corrupt_object", deflateSync("blob -3\0abc")],
  ["no size", "corrupt_object", deflateSync("blob \0abc")],
  ["two blanks before the size", "corrupt_object", deflateSync("blob  3\0abc")],
  ["a header without an end", "corrupt_object", deflateSync(`blob 3${" ".repeat(40)}\0abc`)],
  ["bytes after its stream", "corrupt_object", Buffer.concat([deflateSync("blob 3\0abc"), Buffer.from("x")])],
  ["a damaged checksum", "corrupt_zlib", damagedEnd(deflateSync("blob 3\0abc"))],
  ["the content of another id", "corrupt_object", deflateSync("blob 3\0abc")],
];

function damagedEnd(bytes: Buffer): Buffer {
  bytes[bytes.length - 1]! ^= 1;
  return bytes;
}

for (const [name, code, bytes] of FAULTS) {
  test(`ObjectDatabase.read of a loose object with ${name} throws ${code}`, () => {
    using folder = temporaryFolder();
    mkdirSync(join(folder.path, "ab"));
    writeFileSync(join(folder.path, "ab", OID.slice(2)), bytes);
    const database = ObjectDatabase.open(folder.path);
    assert.throws(() => database.read(OID), { code });
    database.close();
  });
}

test("ObjectDatabase reads every kind of loose object that stock git writes", () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "r.git");
  git(folder.path, ["init", "-q", "--bare", path]);
  const blob = git(path, ["hash-object", "-w", "--stdin"], "").toString().trim();
  const tree = git(path, ["mktree"], `100644 blob ${blob}\tempty\n`).toString().trim();
  const commit = git(path, ["commit-tree", "-m", "c", tree]).toString().trim();
  git(path, ["tag", "-a", "-m", "t", "v", commit]);
  const tag = git(path, ["rev-parse", "v"]).toString().trim();
  const database = ObjectDatabase.open(join(path, "objects"));
  for (const [oid, type] of [
    [blob, "blob"],
    [tree, "tree"],
    [commit, "commit"],
    [tag, "tag"],
  ] as const) {
    assert.deepEqual(database.read(oid), { type, content: git(path, ["cat-file", type, oid]) });
    assert.equal(database.info(oid).type, type);
  }
  database.close();
});

test("ObjectDatabase refuses a file in place of its folder of packs", () => {
  using folder = temporaryFolder();
  writeFileSync(join(folder.path, "pack"), "");
  assert.throws(() => ObjectDatabase.open(folder.path), { code: "ENOTDIR" });
});

test("ReachabilityIndex leaves out what cannot be read, and reads on after a close", () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "r.git");
  git(folder.path, ["init", "-q", "--bare", path]);
  const tree = git(path, ["mktree"], "").toString().trim();
  const commit = git(path, ["commit-tree", "-m", "c", tree]).toString().trim();
  mkdirSync(join(path, "objects/ab"), { recursive: true });
  mkdirSync(join(path, "objects/ab", OID.slice(2)));
  const database = ObjectDatabase.open(join(path, "objects"));
  const graph = ReachabilityIndex.open(database).acquire();
  assert.equal(graph.numbers.numberOfOid(OID), -1);
  const number = graph.numbers.numberOfOid(commit);
  assert.ok(number >= 0);
  const { pack, base } = graph.numbers.packs[0]!;
  database.close();
  assert.equal(
    graph.reader.read(pack, number - base).content.toString(),
    git(path, ["cat-file", "commit", commit]).toString(),
  );
  graph.release();
});
