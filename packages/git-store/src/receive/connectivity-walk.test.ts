import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, it, type TestContext } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { temporaryFolder } from "../../test/git.test-kit.ts";
import { encodeDelta, PackBuilder } from "../../test/pack-builder.test-kit.ts";
import { GitStoreError } from "../errors.ts";
import { indexPack } from "../index-pack/index-pack.ts";
import { hashObject, TREE } from "../object-format.ts";
import { ObjectDatabase } from "../object-database.ts";
import type { Oid } from "../oid.ts";
import { ConnectivityWalk } from "./connectivity-walk.ts";

const BLOB = Buffer.from("content\n");

/** Content of a tree with these entries. */
function treeOf(entries: readonly (readonly [mode: string, name: string, oid: Oid])[]): Buffer {
  return Buffer.concat(
    entries.flatMap(([mode, name, oid]) => [Buffer.from(`${mode} ${name}\0`), Buffer.from(oid, "hex")]),
  );
}

/** The walk over a pack in an empty store. */
async function walkOver(
  t: TestContext,
  pack: Buffer,
): Promise<{ walk: ConnectivityWalk; objects: ObjectDatabase }> {
  const folder = temporaryFolder();
  mkdirSync(join(folder.path, "pack"));
  async function* source(): AsyncGenerator<Buffer> {
    yield pack;
  }
  await indexPack(source(), { folder: join(folder.path, "pack"), detectCollisions: false });
  const objects = ObjectDatabase.open(folder.path);
  t.after(() => {
    objects.close();
    folder[Symbol.dispose]();
  });
  const known = { has: () => false };
  return {
    walk: new ConnectivityWalk({ objects, pack: objects.packs[0], known, shallows: new Set() }),
    objects,
  };
}

describe("ConnectivityWalk", () => {
  it("walks a tree with many equal entries in little memory", async (t) => {
    const builder = new PackBuilder();
    builder.object("blob", BLOB);
    const inner = treeOf([["100644", "a", hashObject("sha1", "blob", BLOB)]]);
    builder.object("tree", inner);
    const pair = treeOf([
      ["100644", "a", hashObject("sha1", "blob", BLOB)],
      ["40000", "b", hashObject("sha1", "tree", inner)],
    ]);
    const tree = Buffer.alloc(pair.length * 250_000, pair);
    builder.object("tree", tree, 1);
    const { walk } = await walkOver(t, builder.finish());
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const live = (): number => {
      collect();
      return process.memoryUsage().heapUsed;
    };
    const before = live();
    const state = { isDone: false };
    const check = walk.check(hashObject("sha1", "tree", tree), TREE).finally(() => (state.isDone = true));
    let turns = 0;
    let most = 0;
    while (!state.isDone) {
      if (turns++ % 20 === 1) most = Math.max(most, live() - before);
      await nextTurn();
    }
    await check;
    assert.ok(turns > 5, `${turns} turns of the event loop`);
    assert.ok(most < 10e6, `${most} bytes of heap`);
  });

  it("refuses trees and commits above a limit without reading them", async (t) => {
    const builder = new PackBuilder();
    builder.object("blob", BLOB);
    const entry = treeOf([["100644", "a", hashObject("sha1", "blob", BLOB)]]);
    const small = Buffer.alloc(entry.length * 40_000, entry);
    const base = builder.object("tree", small);
    const copies = Array.from({ length: 64 }, () => ({ copy: [0, small.length] as const }));
    builder.ofsDelta(base, encodeDelta(small.length, small.length * 64, copies));
    const large = Buffer.alloc(small.length * 64, small);
    const text = `tree ${hashObject("sha1", "tree", small)}\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\n\n`;
    const commit = Buffer.concat([Buffer.from(text), Buffer.alloc(9 * 2 ** 20, "x")]);
    builder.object("commit", commit);
    const { walk, objects } = await walkOver(t, builder.finish());
    await walk.check(hashObject("sha1", "tree", small), TREE);
    const read = t.mock.method(objects.reader, "read");
    for (const tip of [hashObject("sha1", "tree", large), hashObject("sha1", "commit", commit)]) {
      await assert.rejects(
        walk.check(tip, undefined),
        (error) =>
          error instanceof GitStoreError && error.code === "too_large" && error.message.includes(tip),
      );
    }
    assert.equal(read.mock.callCount(), 0);
  });
});
