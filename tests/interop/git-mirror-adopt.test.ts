import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, beforeEach, describe, it } from "node:test";
import { git, run } from "@devplat/testkit";
import type { Mirror } from "@devplat/git-mirror";
import { adoptFrom } from "./git-mirror-adopt.ts";
import { FOLDER, openMirror } from "./git-mirror-open.ts";
import { packBetween, reachedInSource, startMirrorStand, type MirrorStand } from "./git-mirror-stand.ts";

for (const format of ["sha1", "sha256"] as const) {
  describe(`a mirror that adopts packs (${format})`, () => {
    let stand: MirrorStand;
    let first: Mirror;
    let second: Mirror;
    let secondPath = "";
    let count = 0;
    const opened: Mirror[] = [];
    const openAt = (root: string): Mirror => {
      const mirror = openMirror({ root, threads: stand.threads });
      opened.push(mirror);
      return mirror;
    };
    beforeEach(async () => {
      stand ??= await startMirrorStand({ steps: 6, format });
      const firstRoot = join(stand.folder, `first${count}`);
      const secondRoot = join(stand.folder, `second${count++}`);
      first = openAt(firstRoot);
      second = openAt(secondRoot);
      secondPath = join(secondRoot, FOLDER);
    });
    after(async () => {
      for (const each of opened) each.close();
      await stand.stop();
    });
    const packs = async (): Promise<string[]> =>
      (await readdir(join(secondPath, "objects", "pack")))
        .filter((file) => file.endsWith(".idx"))
        .map((file) => file.slice(0, -".idx".length));
    const namesOf = async (mirror: Mirror): Promise<string[]> => {
      await using snapshot = await mirror.sharing.snapshot();
      return snapshot?.packs.map(({ name }) => name) ?? [];
    };
    /** Checks with stock git, and compares the objects with those of the source. */
    const assertComplete = async (revision: string): Promise<void> => {
      const fsck = await run("git", ["-C", secondPath, "fsck", "--full", "--strict", "--no-dangling"]);
      assert.equal(fsck.code, 0, fsck.stderr);
      assert.equal(fsck.stderr, "");
      const reached = await git(["-C", secondPath, "rev-list", "--objects", "--no-object-names", "--all"]);
      const expected = await reachedInSource(stand.source, revision);
      assert.deepEqual(new Set(expected).difference(new Set(reached.split("\n"))), new Set());
    };

    it("has the objects and refs of the other one, for stock git too", async () => {
      for (const step of stand.steps) await stand.fill(first, step);
      assert.equal(await second.view(format), undefined);
      assert.deepEqual(await adoptFrom(first, second), { kind: "adopted", removed: [] });
      await assertComplete("main");
      const view = await second.view(format);
      assert.equal(view?.refs.get("refs/heads/main")?.oid, stand.steps.at(-1)!.oid);
      assert.deepEqual(
        view?.graph.numbers.packs.map(({ pack }) => pack.name),
        await namesOf(first),
        "the order of the packs is the same",
      );
      assert.deepEqual([...view.graph.damagedFiles], []);
      view?.release();
      const left = (await readdir(secondPath)).filter((name) => name.startsWith("tmp_"));
      assert.deepEqual(left, []);
    });

    it("can be filled on top, and drops packs that the other one has replaced", async () => {
      const [last] = stand.steps.slice(-1);
      for (const step of stand.steps.slice(0, -1)) await stand.fill(first, step);
      await adoptFrom(first, second);
      await stand.fill(second, last!);
      const own = (await namesOf(second)).filter(
        (name) => !new Set<string>(stand.steps.map(String)).has(name),
      );
      assert.equal(own.length, stand.steps.length);
      const replaced = new Set(await namesOf(first));
      const { pack } = await first.repack({ pruneAfterMs: Infinity, minPacks: 2 });
      const result = await adoptFrom(first, second, {
        replaced,
        refs: (before) => before,
      });
      assert.equal(result.kind, "adopted");
      assert.deepEqual(new Set(result.kind === "adopted" ? result.removed : []), replaced);
      const now = await packs();
      assert.equal(now.length, 2);
      assert.ok(now.includes(pack!));
      await assertComplete("main");
    });

    it("keeps a replaced pack whose objects a pack or ref of its own needs", async () => {
      const [base, ...rest] = stand.steps;
      await stand.fill(first, base!);
      for (const step of rest) await stand.fill(first, step);
      await adoptFrom(first, second);
      const replaced = new Set(await namesOf(first));
      // The first mirror goes back to the first commit, and drops everything else.
      const back = { name: "refs/heads/main", oid: base!.oid };
      await first.sharing.adopt({
        format,
        folder: await first.sharing.stage(format),
        packs: [],
        shared: new Set(),
        replaced: new Set(),
        refs: () => new Map([[back.name, back]]),
        retained: [],
      });
      const { dropped } = await first.repack({ pruneAfterMs: 0, minPacks: 2 });
      assert.ok(dropped > 0);
      const result = await adoptFrom(first, second, { replaced, refs: (before) => before });
      assert.equal(result.kind, "adopted");
      await assertComplete("main");
      // Without a ref that needs them they go.
      const again = await adoptFrom(first, second, { replaced, refs: () => new Map([[back.name, back]]) });
      assert.equal(again.kind, "adopted");
      assert.deepEqual(await packs(), await namesOf(first));
      await assertComplete(base!.oid);
    });

    it("drops a pack of its own whose objects are all in the shared packs", async () => {
      const whole = await packBetween(stand.source, stand.folder, undefined, stand.steps.at(-1)!.oid);
      for (const step of stand.steps) await stand.fill(first, step);
      await stand.fill(second, { oid: stand.steps.at(-1)!.oid, pack: whole });
      const own = await packs();
      assert.deepEqual(await adoptFrom(first, second), { kind: "adopted", removed: own });
      await assertComplete("main");
    });

    it("is left as it was when a pack that is needed does not come", async () => {
      for (const step of stand.steps) await stand.fill(first, step);
      await stand.fill(second, stand.steps[0]!);
      const before = await packs();
      const skip = [(await namesOf(first))[2]!];
      assert.deepEqual(await adoptFrom(first, second, { skip }), { kind: "incomplete" });
      assert.deepEqual(await packs(), before);
      await assertComplete(stand.steps[0]!.oid);
    });

    it("a fill that waits for an adoption sees its refs", async () => {
      for (const step of stand.steps) await stand.fill(first, step);
      let filling: Promise<void> | undefined;
      await adoptFrom(first, second, {
        refs: (before) => {
          const open = (): Promise<never> => Promise.reject(new Error("nothing is missing"));
          filling = second.receive({ open, format, wants: [stand.steps[0]!.oid], shown: [] });
          const oid = stand.steps.at(-1)!.oid;
          return new Map([...before, ["refs/heads/main", { name: "refs/heads/main", oid }]]);
        },
      });
      await filling;
      await assertComplete("main");
    });
  });
}
