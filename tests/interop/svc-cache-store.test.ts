import assert from "node:assert/strict";
import { chmod, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { git, repositories } from "@devplat/testkit";
import { command, contentOf, startStand, type Stand } from "./svc-git-stand.ts";

const storeOf = (stand: Stand, name: string): string => join(stand.storagePath, "org", `${name}.git`);
const packsOf = async (store: string): Promise<string[]> =>
  (await readdir(join(store, "objects", "pack")).catch(() => [])).filter((file) => file.endsWith(".pack"));

/** A listed repository that was cloned once; its store is full. */
async function warm(
  stand: Stand,
  name: string,
  build: (dir: string) => Promise<void> = (dir) => repositories.merges(dir),
): Promise<string> {
  const { path } = await stand.codeHost.addRepository("org", name, { build });
  stand.list("org", name);
  await clone(stand, name, `${name}-first`, ["--mirror"]);
  await stand.cache.settled();
  stand.codeHost.resetCalls();
  return path;
}

async function clone(stand: Stand, name: string, to: string, options: readonly string[]): Promise<void> {
  const result = await stand.git(["clone", "-q", ...options, `${stand.url}/org/${name}`, to]);
  assert.equal(result.code, 0, result.stderr);
}

describe("the object store behind a miss", () => {
  let stand: Stand;
  before(async () => {
    stand = await startStand();
  });
  after(() => stand.stop());

  for (const [name, build] of Object.entries({
    merges: repositories.merges,
    tags: repositories.tags,
    sha256: repositories.sha256,
    submodules: repositories.submodules,
  })) {
    it(`a miss of ${name} fills a bare repository with equal refs and a clean fsck [svc 2.11 3.1]`, async () => {
      const path = await warm(stand, name, (dir) => build(dir));
      assert.equal(await contentOf(storeOf(stand, name)), await contentOf(path));
      assert.equal(stand.cache.stats("org", name).packs, 1);
    });
  }

  const kinds: Record<string, readonly string[]> = {
    "a full clone of one branch": ["--single-branch", "--no-tags"],
    "a shallow clone": ["--depth", "1"],
    "a shallow clone since a time": ["--shallow-since", "2000-01-01"],
    "a clone without blobs": ["--filter=blob:none", "--no-checkout"],
    "a clone without trees": ["--filter=tree:0", "--no-checkout"],
  };
  for (const [title, options] of Object.entries(kinds)) {
    it(`${title} comes from stored packs without a fetch, and equals a direct one [svc 2.7]`, async () => {
      const name = `kind-${title.replaceAll(" ", "-")}`;
      const path = await warm(stand, name, (dir) => repositories.tags(dir));
      await clone(stand, name, name, options);
      assert.equal(stand.upstream("fetch"), 0);
      // Not by HTTP: with ref-in-want, stock git's server puts shallow-info where its client does not look for it.
      await git(["-C", path, "config", "uploadpack.allowFilter", "true"]);
      const direct = await stand.git(["clone", "-q", ...options, `file://${path}`, `${name}-direct`]);
      assert.equal(direct.code, 0, direct.stderr);
      const objects = ["cat-file", "--batch-all-objects", "--batch-check", "--unordered"];
      const [ours, theirs] = await Promise.all(
        [name, `${name}-direct`].map(async (folder) =>
          (await git(["-C", stand.folder(folder), ...objects])).split("\n").toSorted(),
        ),
      );
      assert.deepEqual(ours, theirs);
      const labels = `owner="org",repo="${name}"`;
      assert.equal(await stand.metric(`svc_cache_request_total{${labels},result="miss"}`), 1);
    });
  }

  it("a response from packs is a hit, timed and stored, so that the next uses its file [svc 2.7]", async () => {
    await warm(stand, "counted");
    const earlier = {
      made: await stand.metric("svc_cache_pack_seconds_count"),
      pack: await stand.metric(`svc_cache_bytes_total{source="pack"}`),
      response: await stand.metric(`svc_cache_bytes_total{source="response"}`),
    };
    // The second use stores the response.
    for (const to of ["counted-1", "counted-2", "counted-3"]) {
      await clone(stand, "counted", to, ["--bare", "--depth", "2"]);
      await stand.cache.settled();
    }
    assert.equal(stand.upstream("fetch"), 0);
    assert.equal((await stand.metric("svc_cache_pack_seconds_count")) - earlier.made, 2);
    const made = ((await stand.metric(`svc_cache_bytes_total{source="pack"}`)) - earlier.pack) / 2;
    assert.ok(made > 0);
    assert.equal((await stand.metric(`svc_cache_bytes_total{source="response"}`)) - earlier.response, made);
    assert.equal(await stand.metric(`svc_cache_request_total{owner="org",repo="counted",result="hit"}`), 3);
  });

  it("20 concurrent shallow clones share one response [svc 2.10]", async () => {
    await warm(stand, "shared");
    const made = await stand.metric("svc_cache_pack_seconds_count");
    await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        clone(stand, "shared", `shared-${at}`, ["--bare", "--depth", "1"]),
      ),
    );
    await stand.cache.settled();
    assert.equal(stand.upstream("fetch"), 0);
    assert.equal((await stand.metric("svc_cache_pack_seconds_count")) - made, 1);
  });

  it("a fetch that is behind is negotiated here [svc 2.7]", async () => {
    const path = await warm(stand, "behind");
    await stand.git(["init", "-q", "--bare", "behind"]);
    const old = await git(["-C", path, "rev-parse", "refs/heads/main~2"]);
    const url = `${stand.url}/org/behind`;
    const first = await stand.git(["-C", "behind", "fetch", "-q", url, `${old}:refs/heads/main`]);
    assert.equal(first.code, 0, first.stderr);
    const second = await stand.git([
      "-C",
      "behind",
      "fetch",
      "-q",
      "--update-head-ok",
      url,
      "+refs/*:refs/*",
    ]);
    assert.equal(second.code, 0, second.stderr);
    assert.equal(stand.upstream("fetch"), 0);
    assert.equal(await contentOf(stand.folder("behind")), await contentOf(path));
  });

  it("a commit below an authorized tip is served by its id; a purged one is forwarded [svc 1.29]", async () => {
    const path = await warm(stand, "purged", (dir) => repositories.linear(dir, { commits: 6 }));
    const tip = await git(["-C", path, "rev-parse", "refs/heads/main"]);
    const below = await git(["-C", path, "rev-parse", "refs/heads/main~1"]);
    const fetch = (oid: string): Buffer => command("fetch", ["no-progress", `want ${oid}`, "done"]);
    assert.equal((await stand.post("org/purged", fetch(below))).headers["x-svc-cache"], "hit");
    assert.equal((await stand.post("org/purged", fetch(tip))).headers["x-svc-cache"], "hit");
    for (const ref of (await git(["-C", path, "for-each-ref", "--format=%(refname)"])).split("\n")) {
      await git(["-C", path, "update-ref", ref, `${below}~1`]);
    }
    await stand.post("org/purged", command("ls-refs", []));
    stand.codeHost.resetCalls();
    for (const oid of [tip, below]) {
      assert.notEqual((await stand.post("org/purged", fetch(oid))).headers["x-svc-cache"], "hit");
    }
    assert.equal(stand.upstream("fetch"), 2);
  });

  it("a broken-off answer fills nothing", async () => {
    await stand.codeHost.addRepository("org", "cut", {
      build: (dir) => repositories.bigBlobs(dir, { blobs: 1, bytes: 2 ** 20 }),
    });
    stand.list("org", "cut");
    stand.codeHost.inject({ path: /cut/, command: "fetch", times: 1 }, { cutAfterBytes: 500_000 });
    const result = await stand.git(["clone", "-q", "--bare", `${stand.url}/org/cut`, "cut"]);
    assert.notEqual(result.code, 0);
    await stand.cache.settled();
    assert.deepEqual(await packsOf(storeOf(stand, "cut")), []);
  });

  it("purge and a delisted repository's cleanup remove the store [svc 4.15]", async () => {
    await warm(stand, "removed");
    assert.equal((await packsOf(storeOf(stand, "removed"))).length, 1);
    await stand.cache.purge("org", "removed");
    await stand.cache.settled();
    assert.deepEqual(await packsOf(storeOf(stand, "removed")), []);
    await clone(stand, "removed", "removed-again", ["--bare"]);
    await stand.cache.settled();
    assert.equal((await packsOf(storeOf(stand, "removed"))).length, 1);
    stand.unlist("org", "removed");
    await stand.cache.cleanup();
    await stand.cache.settled();
    assert.deepEqual(await packsOf(storeOf(stand, "removed")), []);
  });
});

describe("the object store of an earlier process", () => {
  let stand: Stand;
  before(async () => {
    // A shallow clone of a ref by its name may be forwarded; git before 2.41 cannot read the response (docs/interop.md).
    stand = await startStand({ refInWant: false });
  });
  after(() => stand.stop());

  const next = (name: string): Promise<Stand> =>
    startStand({ storagePath: stand.storagePath, hostUrl: stand.codeHost.url, listed: [name] });

  it("serves", async () => {
    const path = await warm(stand, "kept");
    const second = await next("kept");
    try {
      await clone(second, "kept", "kept", ["--mirror", "--no-tags"]);
      assert.equal(stand.upstream("fetch"), 0);
      assert.equal(await contentOf(second.folder("kept")), await contentOf(path));
    } finally {
      await second.stop();
    }
  });

  it("is noticed when another process removes it, and when it makes a new one [svc 3.3]", async () => {
    const path = await warm(stand, "twice");
    const second = await next("twice");
    try {
      await clone(second, "twice", "twice-1", ["--bare", "--depth", "1"]);
      await second.cache.purge("org", "twice");
      await clone(stand, "twice", "twice-2", ["--mirror"]);
      await stand.cache.settled();
      assert.equal(await contentOf(storeOf(stand, "twice")), await contentOf(path));
      stand.codeHost.resetCalls();
      for (const [at, process] of [stand, second].entries()) {
        await clone(process, "twice", `twice-3-${at}`, ["--bare", "--depth", "2"]);
      }
      assert.equal(stand.upstream("fetch"), 0);
    } finally {
      await second.stop();
    }
  });

  it("whose only pack is damaged is quarantined, and the clone is forwarded", async () => {
    const path = await warm(stand, "damaged");
    const folder = join(storeOf(stand, "damaged"), "objects", "pack");
    const [pack = ""] = await packsOf(storeOf(stand, "damaged"));
    const bytes = await readFile(join(folder, pack));
    const at = bytes.length >> 1;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    await chmod(join(folder, pack), 0o600);
    await writeFile(join(folder, pack), bytes);
    const second = await next("damaged");
    try {
      await clone(second, "damaged", "damaged", ["--bare", "--single-branch", "--no-tags"]);
      assert.equal(stand.upstream("fetch"), 1);
      await second.cache.settled();
      const folders = await readdir(join(stand.storagePath, "org"));
      assert.ok(folders.includes("damaged.git.corrupt~"));
      const labels = `owner="org",repo="damaged"`;
      // A miss, if the check took longer than a request waits for it.
      const counts = ["error", "miss"].map((result) =>
        second.metric(`svc_cache_request_total{${labels},result="${result}"}`),
      );
      const [errors = 0, misses = 0] = await Promise.all(counts);
      assert.equal(errors + misses, 1);
      await clone(second, "damaged", "damaged-full", ["--mirror"]);
      assert.equal(await contentOf(second.folder("damaged-full")), await contentOf(path));
    } finally {
      await second.stop();
    }
  });

  it("from another code host is quarantined [svc 1.28]", async () => {
    await warm(stand, "moved");
    const second = await startStand({ storagePath: stand.storagePath, listed: ["moved"] });
    try {
      await second.codeHost.addRepository("org", "moved", { build: (dir) => repositories.merges(dir) });
      await clone(second, "moved", "moved", ["--bare", "--single-branch", "--no-tags"]);
      assert.equal(second.upstream("fetch"), 1);
    } finally {
      await second.stop();
    }
  });
});
