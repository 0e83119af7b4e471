import assert from "node:assert/strict";
import { chmod, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { git } from "@devplat/testkit";
import type { Mirror } from "@devplat/git-mirror";
import { reachedInSource, startMirrorStand, type MirrorStand } from "./git-mirror-stand.ts";

/** Flips a bit in the middle of a file. */
async function damage(path: string): Promise<void> {
  const bytes = await readFile(path);
  const at = bytes.length >> 1;
  bytes[at] = (bytes[at] ?? 0) ^ 4;
  await chmod(path, 0o600);
  await writeFile(path, bytes);
}

for (const format of ["sha1", "sha256"] as const) {
  describe(`a store of several packs, one of them damaged (${format})`, () => {
    let stand: MirrorStand;
    let store: Mirror;
    /** Oldest first. */
    const packs: string[] = [];
    beforeEach(async () => {
      stand = await startMirrorStand({ steps: 5, format });
      store = stand.open();
      packs.length = 0;
      for (const step of stand.steps) {
        await stand.fill(store, step);
        packs.push((await stand.packs()).find((name) => !packs.includes(name))!);
      }
    });
    afterEach(async () => {
      store.close();
      await stand.stop();
    });
    const inPack = (name: string): string => join(stand.path, "objects", "pack", name);
    const stem = (name: string): string => name.replace(/\.pack$/, "");

    for (const kind of ["pack", "idx"]) {
      it(`moves that pack (.${kind}) and its dependents to "corrupt", and keeps the rest`, async () => {
        await damage(inPack(packs[3]!).replace(/pack$/, kind));
        const repaired = await store.repair();
        assert.deepEqual(repaired, { damaged: [stem(packs[3]!)], incomplete: [stem(packs[4]!)] });
        assert.ok((await readdir(join(stand.path, "corrupt"))).includes(packs[3]!));
        assert.deepEqual(await stand.packs(), packs.slice(0, 3).toSorted());
        assert.deepEqual(await stand.objects(), await reachedInSource(stand.source, stand.steps[2]!.oid));
        const refs = await git(["-C", stand.path, "for-each-ref", "--format=%(objectname)"]);
        assert.equal(refs, stand.steps[2]!.oid);
      });
    }

    it("takes again what it lost", async () => {
      await damage(inPack(packs[3]!));
      await store.repair();
      for (const step of stand.steps.slice(3)) await stand.fill(store, step);
      assert.deepEqual(await stand.objects(), await reachedInSource(stand.source, stand.steps[4]!.oid));
      assert.equal(await git(["-C", stand.path, "rev-parse", "refs/heads/main"]), stand.steps[4]!.oid);
    });

    it("has nothing left when it is the pack that all others count on", async () => {
      await damage(inPack(packs[0]!));
      assert.equal(await store.repair(), undefined);
    });

    it("is left alone when all packs are sound", async () => {
      assert.equal(await store.repair(), undefined);
      assert.deepEqual(await stand.packs(), packs.toSorted());
    });

    it("a repair that was broken off is noticed when the store is opened, and done again", async () => {
      await writeFile(join(stand.path, "repairing~"), "");
      const other = stand.open();
      await assert.rejects(other.view(format), /interrupted/);
      assert.deepEqual(await other.repair(), { damaged: [], incomplete: [] });
      const view = await other.view(format);
      assert.ok(view !== undefined);
      view.release();
      other.close();
    });

    it("is not merged, and the damage is told", async () => {
      await damage(inPack(packs[3]!));
      const merging = store.repack({ pruneAfterMs: Infinity, minPacks: 2 });
      await assert.rejects(merging, { name: "JobFailure" });
      assert.deepEqual(await stand.packs(), packs.toSorted());
    });
  });
}
