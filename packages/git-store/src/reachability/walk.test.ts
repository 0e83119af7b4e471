import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/git.test-kit.ts";
import { PackBuilder } from "../../test/pack-builder.test-kit.ts";
import { hashObject, type ObjectType } from "../object-format.ts";
import { Repository } from "../repository/repository.ts";
import { ReachabilityIndex } from "./reachability-index.ts";
import { finish } from "../slices.ts";
import { reach } from "./walk.ts";

/** Walks from a commit whose tree has one entry, with the objects that `add` puts into the pack. */
async function walk(
  mode: string,
  add: (put: (type: ObjectType, content: Buffer) => string) => string,
): Promise<number> {
  using folder = temporaryFolder();
  const builder = new PackBuilder();
  const put = (type: ObjectType, content: Buffer): string => {
    builder.object(type, content);
    return hashObject("sha1", type, content);
  };
  const entry = Buffer.concat([Buffer.from(`${mode} x\0`), Buffer.from(add(put), "hex")]);
  const tree = put("tree", entry);
  const person = "A <a@example.org> 1700000000 +0000";
  const commit = put("commit", Buffer.from(`tree ${tree}\nauthor ${person}\ncommitter ${person}\n\nm\n`));
  const repository = await Repository.init(join(folder.path, "store.git"));
  const pack = builder.finish();
  await repository.receivePack(
    (async function* one() {
      yield pack;
    })(),
    { threads: 0 },
  );
  const index = ReachabilityIndex.open(repository.objects);
  const graph = index.acquire();
  try {
    const set = graph.numbers.emptySet();
    finish(reach(graph, [graph.numbers.numberOfOid(commit)], set));
    return set.reduce((sum, word) => sum + (word === 0 ? 0 : word.toString(2).replaceAll("0", "").length), 0);
  } finally {
    graph.release();
    index.close();
    repository.close();
  }
}

const blob = (put: (type: ObjectType, content: Buffer) => string): string => put("blob", Buffer.from("b\n"));

test("reach refuses a tree entry whose mode does not match its object", async () => {
  await assert.rejects(walk("40000", blob), { code: "corrupt_object" });
  await assert.rejects(
    walk("100644", (put) => put("tree", Buffer.alloc(0))),
    { code: "corrupt_object" },
  );
});

test("reach says which object is missing, and passes over submodules", async () => {
  const none = "7".repeat(40);
  await assert.rejects(
    walk("100644", () => none),
    (error: { code: string; details: { oid: string } }) =>
      error.code === "missing_object" && error.details.oid === none,
  );
  assert.equal(await walk("160000", () => none), 2);
  assert.equal(await walk("100644", blob), 3);
});
