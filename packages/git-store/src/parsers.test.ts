import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { ObjectFormat } from "@devplat/git-protocol";
import fc from "fast-check";
import { allObjects, buildRepository, git, temporaryFolder } from "../test/git.test-kit.ts";
import { parseCommit } from "./commit.ts";
import { GitStoreError } from "./errors.ts";
import { ObjectDatabase } from "./object-database.ts";
import { hashObject } from "./object-format.ts";
import { parseTag } from "./tag.ts";
import { TreeCursor } from "./tree.ts";

for (const format of ["sha1", "sha256"] satisfies ObjectFormat[]) {
  test(`parseCommit, TreeCursor and parseTag see what stock git shows (${format})`, () => {
    using folder = temporaryFolder();
    const path = buildRepository(folder.path, format);
    const database = ObjectDatabase.open(join(path, "objects"), { format });
    const log = git(path, ["log", "--all", "--format=%H|%T|%P|%ct"]).toString().trim().split("\n");
    for (const line of log) {
      const [oid, tree, parents, time] = line.split("|");
      assert.deepEqual(parseCommit(database.read(oid!).content, format), {
        tree,
        parents: parents === "" ? [] : parents!.split(" "),
        committerTime: Number(time),
      });
    }
    for (const { oid } of allObjects(path).filter(({ type }) => type === "tree")) {
      const cursor = new TreeCursor(database.read(oid).content, format);
      const lines: string[] = [];
      while (cursor.next()) {
        const kind = cursor.isTree ? "tree" : "blob";
        lines.push(
          `${cursor.mode.toString(8).padStart(6, "0")} ${kind} ${cursor.oid}\t${cursor.name.toString()}`,
        );
      }
      assert.equal(`${lines.join("\n")}\n`, git(path, ["ls-tree", oid]).toString());
    }
    const tag = git(path, ["rev-parse", "v1"]).toString().trim();
    const object = git(path, ["rev-parse", "v1^{}"]).toString().trim();
    assert.deepEqual(parseTag(database.read(tag).content, format), { object, type: "commit" });
    database.close();
  });
}

const TREE = "1".repeat(40);
const COMMITS: [name: string, text: string][] = [
  ["no tree line", "parent x\n"],
  ["an id that is too short", `tree ${TREE.slice(1)}\nauthor a <a> 1 +0000\n`],
  ["an id in upper case", `tree ${"A".repeat(40)}\nauthor a <a> 1 +0000\n`],
  ["no author line", `tree ${TREE}\ncommitter a <a> 1 +0000\n`],
  ["a cut parent line", `tree ${TREE}\nparent ${TREE.slice(3)}`],
  ["nothing", ""],
];

for (const [name, text] of COMMITS) {
  test(`parseCommit of a commit with ${name} throws corrupt_object`, () => {
    assert.throws(() => parseCommit(Buffer.from(text), "sha1"), { code: "corrupt_object" });
  });
}

for (const [committer, expected] of [
  ["committer a <a@b> 1700000000 +0100", 1_700_000_000],
  ["committer odd > name 5 <a@b> 1700000000 +0100", 1_700_000_000],
  ["committer a <a@b> now", 0],
  ["committer a <a@b> 99999999999999999999 +0000", 0],
  ["committer nobody", 0],
  ["", 0],
] as const) {
  test(`parseCommit reads the date of "${committer}" as ${expected}`, () => {
    const text = `tree ${TREE}\nauthor a <a> 5 +0000\n${committer}\n\nmessage > 12 +0000\n`;
    assert.equal(parseCommit(Buffer.from(text), "sha1").committerTime, expected);
  });
}

test("TreeCursor of any bytes ends, or throws corrupt_object", () => {
  const part = fc.oneof(
    fc.uint8Array({ maxLength: 30 }),
    fc.constant(Buffer.from(`100644 name\0${"x".repeat(20)}`)),
    fc.constant(Buffer.from("40000 ")),
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 5 }), (parts) => {
      const cursor = new TreeCursor(Buffer.concat(parts), "sha1");
      try {
        while (cursor.next()) assert.ok(cursor.oidStart + 20 <= cursor.content.length);
      } catch (error) {
        assert.ok(error instanceof GitStoreError && error.code === "corrupt_object", String(error));
      }
    }),
    { numRuns: 500 },
  );
});

test("parseTag of anything else throws corrupt_object", () => {
  for (const text of ["", "object x\n", `object ${TREE}\ntype widget\n`, `object ${TREE}\n`]) {
    assert.throws(() => parseTag(Buffer.from(text), "sha1"), { code: "corrupt_object" });
  }
});

test("hashObject gives the ids of stock git", () => {
  using folder = temporaryFolder();
  const content = Buffer.from("some content\0with a zero\n");
  for (const format of ["sha1", "sha256"] as const) {
    const path = join(folder.path, format);
    git(folder.path, ["init", "-q", "--bare", `--object-format=${format}`, path]);
    const expected = git(path, ["hash-object", "--stdin"], content).toString().trim();
    assert.equal(hashObject(format, "blob", content), expected);
  }
});
