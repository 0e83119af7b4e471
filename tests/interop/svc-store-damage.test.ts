import assert from "node:assert/strict";
import { chmod, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, afterEach, describe, it } from "node:test";
import { git, repositories } from "@devplat/testkit";
import type { RepositoryStore } from "@devplat/git-mirror";
import { contentOf, startStand, type Stand } from "./svc-git-stand.ts";
import { reachedInSource, startStoreStand, type StoreStand } from "./svc-store-stand.ts";

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
    let stand: StoreStand;
    let store: RepositoryStore;
    /** Oldest first. */
    const packs: string[] = [];
    beforeEach(async () => {
      stand = await startStoreStand({ steps: 5, format });
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
      it(`loses that pack (.${kind}) to the folder "corrupt" and what counts on it; the rest is whole`, async () => {
        await damage(inPack(packs[3]!).replace(/pack$/, kind));
        const repaired = await store.repair(stand.thread);
        assert.deepEqual(repaired, { aside: [stem(packs[3]!)], removed: [stem(packs[4]!)] });
        assert.ok((await readdir(join(stand.path, "corrupt"))).includes(packs[3]!));
        assert.deepEqual(await stand.packs(), packs.slice(0, 3).toSorted());
        assert.deepEqual(await stand.objects(), await reachedInSource(stand.source, stand.steps[2]!.oid));
        const refs = await git(["-C", stand.path, "for-each-ref", "--format=%(objectname)"]);
        assert.equal(refs, stand.steps[2]!.oid);
      });
    }

    it("takes again what it lost", async () => {
      await damage(inPack(packs[3]!));
      await store.repair(stand.thread);
      for (const step of stand.steps.slice(3)) await stand.fill(store, step);
      assert.deepEqual(await stand.objects(), await reachedInSource(stand.source, stand.steps[4]!.oid));
      assert.equal(await git(["-C", stand.path, "rev-parse", "refs/heads/main"]), stand.steps[4]!.oid);
    });

    it("has nothing left when it is the pack that all others count on", async () => {
      await damage(inPack(packs[0]!));
      assert.equal(await store.repair(stand.thread), undefined);
    });

    it("is left alone when all packs are sound", async () => {
      assert.equal(await store.repair(stand.thread), undefined);
      assert.deepEqual(await stand.packs(), packs.toSorted());
    });

    it("a repair that was broken off is noticed when the store is opened, and done again", async () => {
      await writeFile(join(stand.path, "repairing~"), "");
      const other = stand.open();
      await assert.rejects(other.view(format), /broken off/);
      assert.deepEqual(await other.repair(stand.thread), { aside: [], removed: [] });
      const view = await other.view(format);
      assert.ok(view !== undefined);
      view.release();
      other.close();
    });

    it("is not merged, and the damage is told", async () => {
      await damage(inPack(packs[3]!));
      const merging = store.consolidate({ thread: stand.thread, pruneAfterMs: Infinity, least: 2 });
      await assert.rejects(merging, { name: "ProofFailure" });
      assert.deepEqual(await stand.packs(), packs.toSorted());
    });
  });
}

describe("a damaged pack while the service runs", () => {
  let stand: Stand;
  before(async () => {
    stand = await startStand();
  });
  after(() => stand.stop());

  it("is set aside alone; what it held is fetched again, and the store is clean [svc 2.32]", async () => {
    const { path } = await stand.codeHost.addRepository("org", "one", {
      build: (dir) => repositories.linear(dir),
    });
    stand.list("org", "one");
    const clone = async (to: string, options: readonly string[] = ["--mirror"]): Promise<void> => {
      const result = await stand.git(["clone", "-q", ...options, `${stand.url}/org/one`, to]);
      assert.equal(result.code, 0, result.stderr);
      await stand.cache.settled();
    };
    await clone("first");
    const store = join(stand.storagePath, "org", "one.git");
    const packs = async (): Promise<string[]> =>
      (await readdir(join(store, "objects", "pack"))).filter((file) => file.endsWith(".pack"));
    const [base = ""] = await packs();
    await repositories.append(path, { commits: 2 });
    await clone("second");
    const later = (await packs()).find((name) => name !== base)!;
    await damage(join(store, "objects", "pack", later));
    // Read anew: what the process has in memory is sound.
    const next = await startStand({
      storagePath: stand.storagePath,
      hostUrl: stand.codeHost.url,
      listed: ["one"],
    });
    try {
      const through = async (to: string): Promise<void> => {
        const result = await next.git([
          "clone",
          "-q",
          "--bare",
          "--filter=blob:none",
          `${next.url}/org/one`,
          to,
        ]);
        assert.equal(result.code, 0, result.stderr);
        await next.cache.settled();
      };
      stand.codeHost.resetCalls();
      await through("third");
      assert.ok((await packs()).includes(base));
      assert.ok((await readdir(join(store, "corrupt"))).includes(later));
      await repositories.append(path, { commits: 1 });
      const result = await next.git([
        "clone",
        "-q",
        "--mirror",
        "--no-tags",
        `${next.url}/org/one`,
        "fourth",
      ]);
      assert.equal(result.code, 0, result.stderr);
      await next.cache.settled();
      // The delta that is missing, and what is new.
      const { bytesOut } = stand.codeHost.calls.filter(({ command }) => command === "fetch").at(-1)!;
      assert.ok(bytesOut < 10_000, `a delta: ${bytesOut} bytes`);
      assert.equal(await contentOf(next.folder("fourth")), await contentOf(path));
      await git(["-C", store, "fsck", "--full", "--strict"]);
      assert.ok((await packs()).length > 1);
    } finally {
      await next.stop();
    }
  });

  it("does not get to a client: the code host answers, and nothing of it is stored [svc 2.32]", async () => {
    const { path } = await stand.codeHost.addRepository("org", "served", {
      build: (dir) => repositories.linear(dir),
    });
    stand.list("org", "served");
    const clone = async (to: string, options: readonly string[]): Promise<void> => {
      const result = await stand.git(["clone", "-q", ...options, `${stand.url}/org/served`, to]);
      assert.equal(result.code, 0, result.stderr);
      await git(["-C", stand.folder(to), "fsck", "--full", "--strict"]);
      await stand.cache.settled();
    };
    await clone("served-first", ["--mirror"]);
    await repositories.append(path, { commits: 2 });
    await clone("served-second", ["--mirror"]);
    const store = join(stand.storagePath, "org", "served.git");
    for (const file of await readdir(join(store, "objects", "pack"))) {
      if (file.endsWith(".pack")) await damage(join(store, "objects", "pack", file));
    }
    const errors = 'svc_cache_request_total{owner="org",repo="served",result="error"}';
    assert.equal(await stand.metric(errors), 0);
    const fetches = stand.upstream("fetch");
    await clone("served-third", ["--bare", "--filter=blob:limit=1m"]);
    assert.ok(stand.upstream("fetch") > fetches);
    assert.equal(await stand.metric(errors), 1);
    // The same question again, from what was stored of the code host's answer.
    await clone("served-fourth", ["--bare", "--filter=blob:limit=1m"]);
    assert.equal(await contentOf(stand.folder("served-fourth")), await contentOf(path));
  });
});
