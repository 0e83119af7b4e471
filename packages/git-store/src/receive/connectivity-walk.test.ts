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
  options: { readonly failedObjects?: number } = {},
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
  const parts = { objects, pack: objects.packs[0], known: { has: () => false }, shallows: new Set<Oid>() };
  return { walk: new ConnectivityWalk({ ...parts, ...options }), objects };
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

  it("reads the entries of a long delta chain a few times only", async (t) => {
    const links = 3000;
    const builder = new PackBuilder();
    let content = Buffer.from("start\n");
    let offset = builder.object("blob", content);
    const oids: Oid[] = [];
    for (let link = 0; link < links; link++) {
      const insert = Buffer.from(`${link}\n`);
      const result = Buffer.concat([content.subarray(0, 6), insert]);
      const delta = encodeDelta(content.length, result.length, [{ copy: [0, 6] }, { insert }]);
      offset = builder.ofsDelta(offset, delta);
      content = result;
      oids.push(hashObject("sha1", "blob", content));
    }
    const tree = treeOf(oids.map((oid, at) => ["100644", `f${at}`, oid] as const));
    builder.object("tree", tree);
    const { walk, objects } = await walkOver(t, builder.finish());
    const entry = t.mock.method(objects.reader, "entry");
    await walk.check(hashObject("sha1", "tree", tree), TREE);
    assert.ok(entry.mock.callCount() < 4 * links, `${entry.mock.callCount()} reads`);
  });

  it("does not walk the objects of a failed tip again", async (t) => {
    const missing = hashObject("sha1", "blob", Buffer.from("missing"));
    const builder = new PackBuilder();
    let tip: Oid | undefined;
    for (let at = 0; at < 50; at++) {
      const entries: [string, string, Oid][] = [["100644", `${at}`, missing]];
      if (tip !== undefined) entries.push(["40000", "inner", tip]);
      // Only the innermost tree is incomplete.
      const tree = treeOf(at === 0 ? entries : entries.slice(1));
      builder.object("tree", tree);
      tip = hashObject("sha1", "tree", tree);
    }
    const tips = Array.from({ length: 5 }, (_, at) => {
      const tree = treeOf([["40000", `${at}`, tip!]]);
      builder.object("tree", tree);
      return hashObject("sha1", "tree", tree);
    });
    const { walk, objects } = await walkOver(t, builder.finish(), { failedObjects: 100 });
    const read = t.mock.method(objects.reader, "read");
    const fails = async (oid: Oid, code: string): Promise<void> =>
      assert.rejects(walk.check(oid, TREE), (error) => error instanceof GitStoreError && error.code === code);
    for (let turn = 0; turn < 3; turn++) await fails(tips[0]!, "missing_object");
    assert.equal(read.mock.callCount(), 51);
    await fails(tips[1]!, "missing_object");
    assert.equal(read.mock.callCount(), 102);
    for (const other of tips.slice(2)) await fails(other, "too_large");
    await fails(tips[0]!, "missing_object");
    assert.equal(read.mock.callCount(), 102);
  });
});
