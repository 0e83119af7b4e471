import assert from "node:assert/strict";
import { createReadStream } from "node:fs";
import { readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { git } from "@devplat/testkit";
import type { Mirror } from "@devplat/git-mirror";
import { packBetween, reachedInSource, startMirrorStand, type MirrorStand } from "./git-mirror-stand.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const KEPT_MS = 30 * DAY_MS;
const NOTHING = { merged: 0, dropped: 0, pack: undefined, replaced: [] };

async function fillAll(stand: MirrorStand, store: Mirror): Promise<void> {
  for (const step of stand.steps) await stand.fill(store, step);
}

const repack = (store: Mirror, minPacks = 8): ReturnType<Mirror["repack"]> =>
  store.repack({ pruneAfterMs: KEPT_MS, minPacks });

for (const format of ["sha1", "sha256"] as const) {
  describe(`a store that was filled twelve times (${format})`, () => {
    let stand: MirrorStand;
    let store: Mirror;
    before(async () => {
      stand = await startMirrorStand({ format });
      store = stand.open();
      await fillAll(stand, store);
    });
    after(async () => {
      store.close();
      await stand.stop();
    });

    it("is left alone while it has few packs to merge", async () => {
      assert.deepEqual(await repack(store, 100), NOTHING);
      assert.equal((await stand.packs()).length, stand.steps.length);
    });

    it("has few packs after a repack, the same objects, and other processes notice [svc 3.4]", async () => {
      const other = stand.open();
      const held = await other.view(format);
      assert.ok(held !== undefined);
      const objects = await stand.objects();
      const { merged, dropped } = await repack(store);
      assert.ok(merged >= 8);
      assert.equal(dropped, 0);
      assert.equal((await stand.packs()).length, stand.steps.length - merged + 1);
      assert.deepEqual(await stand.objects(), objects);
      await git(["-C", stand.path, "commit-graph", "verify"]);
      // A stream from before is read to its end. A new stream comes from the merged pack.
      for (const oid of objects) assert.ok(held.graph.read(held.graph.numbers.numberOfOid(oid)).content);
      held.release();
      const fresh = await other.view(format);
      assert.equal(fresh?.graph.numbers.packs.length, (await stand.packs()).length);
      for (const oid of objects) assert.ok(fresh.graph.read(fresh.graph.numbers.numberOfOid(oid)).content);
      const tip = fresh.graph.numbers.numberOfOid(stand.steps.at(-1)!.oid);
      assert.ok(fresh.graph.bitmaps.has(tip), "the merged pack has its bitmaps");
      fresh.release();
      other.close();
    });

    it("takes fills afterwards, and is not merged again for one of them", async () => {
      const next = await git(["-C", stand.source, "commit-tree", "-p", "main", "-m", "next", "main^{tree}"]);
      const pack = await packBetween(stand.source, stand.folder, stand.steps.at(-1)!.oid, next);
      await stand.fill(store, { oid: next, pack });
      const packs = await stand.packs();
      assert.deepEqual(await repack(store), NOTHING);
      assert.deepEqual(await stand.packs(), packs);
    });
  });
}

describe("cache.prune_unreachable_after", () => {
  let stand: MirrorStand;
  let store: Mirror;
  const side: string[] = [];
  before(async () => {
    stand = await startMirrorStand({ steps: 4 });
    store = stand.open();
    await fillAll(stand, store);
    // A branch that is dropped, and one that is reset.
    for (const name of ["dropped", "reset"]) {
      const blob = join(stand.folder, name);
      await writeFile(blob, name);
      const oid = await git(["-C", stand.source, "hash-object", "-w", blob]);
      const listing = `100644 blob ${oid}\t${name}\n`;
      await writeFile(blob, listing);
      const tree = await git(
        ["-C", stand.source, "hash-object", "-w", "-t", "tree", "--literally", "--stdin"],
        {
          input: Buffer.concat([Buffer.from(`100644 ${name}\0`), Buffer.from(oid, "hex")]),
        },
      );
      side.push(await git(["-C", stand.source, "commit-tree", "-p", "main~2", "-m", name, tree]));
    }
    for (const [at, oid] of side.entries()) {
      const pack = await packBetween(stand.source, stand.folder, stand.steps.at(-1)!.oid, oid);
      await store.receive({
        open: () => Promise.resolve(createReadStream(pack)),
        format: "sha1",
        wants: [oid],
        shown: [{ name: `refs/heads/side-${at}`, oid }],
      });
    }
  });
  after(async () => {
    store.close();
    await stand.stop();
  });

  const main = (): string => stand.steps.at(-1)!.oid;
  const refs = async (): Promise<string> =>
    git(["-C", stand.path, "for-each-ref", "--format=%(refname) %(objectname)"]);

  it("a branch that upstream deleted loses its ref with the next fill, not its objects", async () => {
    const next = await git(["-C", stand.source, "commit-tree", "-p", main(), "-m", "n", "main^{tree}"]);
    const pack = await packBetween(stand.source, stand.folder, main(), next);
    await store.receive({
      open: () => Promise.resolve(createReadStream(pack)),
      format: "sha1",
      wants: [next],
      shown: [
        { name: "refs/heads/main", oid: next },
        { name: "refs/heads/side-1", oid: main() },
      ],
      covered: ["refs/heads/"],
    });
    assert.equal(await refs(), `refs/heads/main ${next}\nrefs/heads/side-1 ${main()}`);
    await repack(store, 2);
    for (const oid of side) assert.equal(await git(["-C", stand.path, "cat-file", "-t", oid]), "commit");
  });

  it("a repack drops unreachable objects only when their time is over [svc 4.17]", async () => {
    stand.now += KEPT_MS - DAY_MS;
    assert.equal((await repack(store)).dropped, 0);
    stand.now += 2 * DAY_MS;
    assert.equal((await repack(store)).dropped, 6);
    const tip = await git(["-C", stand.path, "rev-parse", "refs/heads/main"]);
    assert.deepEqual(await stand.objects(), await reachedInSource(stand.source, tip));
    await git(["-C", stand.path, "commit-graph", "verify"]);
    const retained = JSON.parse(await readFile(join(stand.path, "former-tips.json"), "utf8")) as object;
    assert.deepEqual(Object(retained).tips, []);
    const view = await store.view("sha1");
    assert.equal(view?.graph.numbers.numberOfOid(side[0]!), -1);
    view.release();
  });

  it("an object wanted by its id keeps its ref for the same time, and goes with it", async () => {
    const pack = await packBetween(stand.source, stand.folder, main(), side[0]!);
    await store.receive({
      open: () => Promise.resolve(createReadStream(pack)),
      format: "sha1",
      wants: [side[0]!],
      shown: [],
    });
    assert.match(await refs(), /refs\/wanted\//);
    stand.now += KEPT_MS - DAY_MS;
    await repack(store);
    assert.match(await refs(), /refs\/wanted\//);
    stand.now += 2 * DAY_MS;
    assert.equal((await repack(store)).dropped, 3);
    assert.doesNotMatch(await refs(), /refs\/wanted\//);
    await stand.objects();
  });
});

describe("repacks at the same time as others", () => {
  let stand: MirrorStand;
  before(async () => {
    stand = await startMirrorStand();
  });
  after(() => stand.stop());

  it("of two processes one merges, the other leaves it alone [svc 3.3]", async () => {
    const [one, two] = [stand.open(), stand.open()];
    await fillAll(stand, one);
    const objects = await stand.objects();
    const done = await Promise.all([repack(one), repack(two)]);
    assert.equal(done.filter(({ merged }) => merged > 0).length, 1);
    assert.deepEqual(await stand.objects(), objects);
    one.close();
    two.close();
  });

  it("a fill that fails during a repack removes nothing of the merged pack", async () => {
    const store = stand.open();
    const next: string[] = [];
    for (let at = 0; at < 10; at++) {
      const parent = next.at(-1) ?? stand.steps.at(-1)!.oid;
      const oid = await git(["-C", stand.source, "commit-tree", "-p", parent, "-m", `n${at}`, "main^{tree}"]);
      await stand.fill(store, { oid, pack: await packBetween(stand.source, stand.folder, parent, oid) });
      next.push(oid);
    }
    const objects = await stand.objects();
    // Complete in itself, but it refers to a commit that is not there.
    const missing = await git([
      "-C",
      stand.source,
      "commit-tree",
      "-p",
      next.at(-1)!,
      "-m",
      "m",
      "main^{tree}",
    ]);
    const broken = await git(["-C", stand.source, "commit-tree", "-p", missing, "-m", "b", "main^{tree}"]);
    const pack = await packBetween(stand.source, stand.folder, missing, broken);
    const filling = assert.rejects(stand.fill(store, { oid: broken, pack }), /is not in the store/);
    const [{ merged }] = await Promise.all([repack(store), filling]);
    assert.ok(merged >= 8);
    assert.deepEqual(await stand.objects(), objects);
    assert.deepEqual(
      (await readdir(stand.path)).filter((name) => name.startsWith("tmp_")),
      [],
    );
    store.close();
  });

  it("a fill while objects are being dropped stops that, because it may need them", async () => {
    const store = stand.open();
    const parent = await git(["-C", stand.path, "rev-parse", "refs/heads/main"]);
    const lost = await git(["-C", stand.source, "commit-tree", "-p", parent, "-m", "lost", "main^{tree}"]);
    await stand.fill(store, { oid: lost, pack: await packBetween(stand.source, stand.folder, parent, lost) });
    const other = await git(["-C", stand.source, "commit-tree", "-p", parent, "-m", "other", "main^{tree}"]);
    await stand.fill(store, {
      oid: other,
      pack: await packBetween(stand.source, stand.folder, parent, other),
    });
    stand.now += KEPT_MS + DAY_MS;
    // A commit on top of the objects that will be dropped, in a pack without them.
    const late = await git(["-C", stand.source, "commit-tree", "-p", lost, "-m", "late", "main^{tree}"]);
    const pack = await packBetween(stand.source, stand.folder, lost, late);
    const { maintenance } = stand.threads;
    const repacking = stand.open({
      ...stand.threads,
      maintenance: {
        run: async (job) => {
          const prepared = await maintenance.run(job);
          await stand.fill(store, { oid: late, pack });
          return prepared;
        },
        rest: () => maintenance.rest(),
      },
    });
    const { dropped } = await repack(repacking);
    assert.equal(dropped, 0);
    assert.ok((await stand.objects()).includes(lost));
    repacking.close();
    store.close();
  });
});

describe("objects that are there and have no name", () => {
  let stand: MirrorStand;
  before(async () => {
    stand = await startMirrorStand({ steps: 3 });
  });
  after(() => stand.stop());

  /** A fill of which nothing is left to fetch. */
  const again = (store: Mirror, oid: string): Promise<void> =>
    store.receive({
      open: () => assert.fail("all that is wanted is there"),
      format: "sha1",
      wants: [oid],
      shown: [{ name: "refs/heads/main", oid }],
    });
  const main = (): Promise<string> => git(["-C", stand.path, "rev-parse", "refs/heads/main"]);

  it("get it by the next fill, after a kill between a pack's check and its names", async () => {
    const killed = stand.open();
    await stand.fill(killed, stand.steps[0]!);
    killed.close();
    await rm(join(stand.path, "packed-refs"));
    const store = stand.open();
    assert.equal(await store.view("sha1"), undefined);
    await again(store, stand.steps[0]!.oid);
    assert.equal(await main(), stand.steps[0]!.oid);
    const view = await store.view("sha1");
    assert.ok(view !== undefined && view.graph.numbers.numberOfOid(stand.steps[0]!.oid) >= 0);
    view.release();
    store.close();
  });

  it("get it back where a branch was reset to them; its old tip stays for a while", async () => {
    const store = stand.open();
    const [, one, two] = stand.steps;
    await stand.fill(store, one!);
    await stand.fill(store, two!);
    await again(store, one!.oid);
    assert.equal(await main(), one!.oid);
    stand.now += KEPT_MS - DAY_MS;
    await repack(store);
    assert.equal(await git(["-C", stand.path, "cat-file", "-t", two!.oid]), "commit");
    await stand.objects();
    store.close();
  });
});
