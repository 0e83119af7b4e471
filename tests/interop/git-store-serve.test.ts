import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { ReachabilityIndex, Repository } from "@devplat/git-store";
import {
  git,
  gitEnvironment,
  History,
  repositories,
  run,
  tempFolder,
  type TempFolder,
} from "@devplat/testkit";
import { serveStore, type StoreServer } from "./git-store-server.ts";

type Format = "sha1" | "sha256";

/** An origin that stock git serves from its folder, and a git store that receives packs from it as fetches would. */
class Stand {
  readonly folder: TempFolder;
  readonly origin: string;
  readonly repository: Repository;
  readonly index: ReachabilityIndex;
  readonly server: StoreServer;
  #known: string[] = [];

  private constructor(
    folder: TempFolder,
    origin: string,
    repository: Repository,
    index: ReachabilityIndex,
    server: StoreServer,
  ) {
    this.folder = folder;
    this.origin = origin;
    this.repository = repository;
    this.index = index;
    this.server = server;
  }

  static async start(format: Format, build: (dir: string) => Promise<void>): Promise<Stand> {
    const folder = await tempFolder("git-store-");
    const origin = join(folder.path, "origin.git");
    await build(origin);
    for (const setting of ["uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"]) {
      await git(["-C", origin, "config", setting, "true"]);
    }
    const repository = await Repository.init(join(folder.path, "store.git"), { format });
    const index = ReachabilityIndex.open(repository.objects);
    const stand = new Stand(folder, origin, repository, index, await serveStore(repository, index));
    await stand.take();
    return stand;
  }

  /** Brings the store up to date with the origin: one more pack, all refs, bitmaps for the tips. */
  async take(): Promise<void> {
    const lines = (
      await git(["-C", this.origin, "for-each-ref", "--format=%(objectname) %(refname)"])
    ).trim();
    const refs = lines.split("\n").map((line) => {
      const [oid, name] = line.split(" ") as [string, string];
      return { oid, name };
    });
    const tips = refs.map(({ oid }) => oid);
    const packed = await run(
      "git",
      ["-C", this.origin, "pack-objects", "-q", "--revs", "--thin", "--delta-base-offset", "--stdout"],
      { input: `${[...tips, ...this.#known.map((oid) => `^${oid}`)].join("\n")}\n`, env: gitEnvironment() },
    );
    assert.equal(packed.code, 0, packed.stderr);
    await this.repository.receivePack(oneChunk(packed.stdoutBytes), { threads: 0 });
    this.index.refresh();
    await this.index.cover(tips, { history: true });
    await this.index.persist();
    await this.repository.replaceRefs(refs);
    this.#known = tips;
  }

  path(name: string): string {
    return join(this.folder.path, name);
  }

  /** The same steps against our server and against stock git's own; then both clones must be equal. */
  async assertAlike(name: string, steps: (url: string, path: string) => Promise<void>): Promise<void> {
    const [mine, theirs] = [this.path(`${name}-mine`), this.path(`${name}-theirs`)];
    await steps(this.server.url, mine);
    await steps(`file://${this.origin}`, theirs);
    await fsck(mine);
    assert.deepEqual(await refsOf(mine), await refsOf(theirs), "equal refs");
    assert.deepEqual(await shallowOf(mine), await shallowOf(theirs), "equal shallow boundary");
    assert.deepEqual(await reachableOf(mine), await reachableOf(theirs), "equal objects reachable");
  }

  async stop(): Promise<void> {
    await this.server.stop();
    this.index.close();
    this.repository.close();
    await this.folder.remove();
  }
}

async function* oneChunk(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

async function fsck(path: string): Promise<void> {
  const { code, stderr, stdout } = await run("git", ["-C", path, "fsck", "--full", "--strict"], {
    env: gitEnvironment(),
  });
  assert.equal(code, 0, stderr + stdout);
}

async function refsOf(path: string): Promise<string[]> {
  const text = await git(["-C", path, "for-each-ref", "--format=%(refname) %(objectname)"]);
  return text.trim().split("\n");
}

async function shallowOf(path: string): Promise<string[]> {
  const found = await git(["-C", path, "rev-parse", "--path-format=absolute", "--git-path", "shallow"]);
  const { stdout } = await run("cat", [found.trim()]);
  return stdout.trim().split("\n").toSorted();
}

/** Objects that are here and reachable, not asking a promisor for what is not. */
async function reachableOf(path: string): Promise<string[]> {
  const text = await git([
    "-C",
    path,
    "rev-list",
    "--objects",
    "--all",
    "--missing=print",
    "--no-object-names",
  ]);
  return text.trim().split("\n").toSorted();
}

async function cloneInto(url: string, path: string, ...options: string[]): Promise<void> {
  await git(["-c", "protocol.version=2", "clone", "-q", "--no-checkout", ...options, url, path]);
}

for (const format of ["sha1", "sha256"] as const) {
  describe(`stock git against uploadPackV2Fetch (${format})`, () => {
    let stand: Stand;
    before(async () => {
      stand = await Stand.start(format, async (dir) => {
        await repositories.merges(dir, { objectFormat: format, rounds: 6 });
        const history = new History(1_700_100_000);
        const tagged = history.commit({ ref: "refs/heads/tagged", files: { "t.txt": "t\n" } });
        history.tag("v1", tagged);
        await history.import(dir);
      });
    });
    after(() => stand.stop());

    test("clone gives what a direct clone gives", () =>
      stand.assertAlike("full", (url, path) => cloneInto(url, path)));

    test("clone --mirror gives every ref", () =>
      stand.assertAlike("mirror", (url, path) => cloneInto(url, path, "--mirror")));

    test("clone --single-branch --no-tags gives one branch", () =>
      stand.assertAlike("single", (url, path) =>
        cloneInto(url, path, "--single-branch", "--no-tags", "--branch", "side"),
      ));

    test("clone --single-branch brings the tags that point into it", () =>
      stand.assertAlike("following", (url, path) =>
        cloneInto(url, path, "--single-branch", "--branch", "tagged"),
      ));

    for (const filter of [
      "blob:none",
      "blob:limit=300",
      "tree:0",
      "tree:2",
      "object:type=commit",
      "combine:blob:none+tree:3",
    ]) {
      test(`clone --filter=${filter}, then a check-out that fetches what it lacks`, () =>
        stand.assertAlike(`filter-${filter.replaceAll(/[^a-z0-9]/gu, "-")}`, async (url, path) => {
          await cloneInto(url, path, `--filter=${filter}`);
          await git(["-C", path, "checkout", "-q", "--detach", "HEAD"]);
          if (filter === "blob:none") await git(["-C", path, "log", "-3", "--stat", "--format=%H", "HEAD"]);
        }));
    }

    test("shallow clone, deepen, deepen by date, unshallow", () =>
      stand.assertAlike("shallow", async (url, path) => {
        await cloneInto(url, path, "--depth=1", "--no-single-branch");
        for (const step of [
          "--depth=3",
          "--deepen=2",
          "--shallow-since=1700000900",
          "--depth=2",
          "--unshallow",
        ]) {
          await git(["-C", path, "fetch", "-q", step]);
        }
      }));

    for (const [name, option] of [
      ["depth", "--depth=2"],
      ["since", "--shallow-since=1700000900"],
      ["exclude", "--shallow-exclude=tagged"],
    ] as const) {
      test(`clone ${option} has git's boundary`, () =>
        stand.assertAlike(`clone-${name}`, (url, path) => cloneInto(url, path, option)));
    }

    test("fetch of one commit by its id at depth 1, as CI check-outs do", () =>
      stand.assertAlike("by-id", async (url, path) => {
        const oid = (await git(["-C", stand.origin, "rev-parse", "main~2"])).trim();
        await git(["init", "-q", `--object-format=${format}`, path]);
        await git([
          "-C",
          path,
          "fetch",
          "-q",
          "--no-tags",
          "--depth=1",
          url,
          `+${oid}:refs/remotes/origin/main`,
        ]);
      }));

    test("fetch after the store has taken more packs brings only what is new", async () => {
      for (const round of [1, 2, 3]) {
        const name = `later-${round}`;
        const path = stand.path(name);
        await cloneInto(stand.server.url, path);
        const earlier = new Set(await reachableOf(path));
        const history = new History(1_700_200_000 + round * 10_000);
        history.commit({
          ref: "refs/heads/main",
          parents: ["refs/heads/main^0"],
          files: { [`new-${round}`]: "n\n" },
        });
        const forced = history.commit({ ref: "refs/heads/side", files: { forced: `${round}\n` } });
        history.tag(`r${round}`, forced);
        await history.import(stand.origin).catch(async () => {
          // A forced update needs the old branch out of the way.
          await git(["-C", stand.origin, "update-ref", "-d", "refs/heads/side"]);
          await history.import(stand.origin);
        });
        await stand.take();
        await git(["-C", path, "fetch", "-q", "--prune"]);
        await fsck(path);
        const direct = stand.path(`${name}-direct`);
        await cloneInto(`file://${stand.origin}`, direct);
        assert.deepEqual(await reachableOf(path), await reachableOf(direct));
        const received = (await reachableOf(path)).filter((oid) => !earlier.has(oid));
        assert.ok(received.length > 0 && received.length < 12, `${received.length} objects are new`);
      }
      assert.ok(stand.index.acquire().numbers.packs.length >= 4);
    });

    test("stock git finds the store clean and reads its commit-graph and bitmaps", async () => {
      await fsck(stand.repository.path);
      await git(["-C", stand.repository.path, "commit-graph", "verify"]);
      const count = await git([
        "-C",
        stand.repository.path,
        "rev-list",
        "--all",
        "--objects",
        "--count",
        "--use-bitmap-index",
      ]);
      const plain = await git(["-C", stand.repository.path, "rev-list", "--all", "--objects", "--count"]);
      assert.equal(count, plain);
    });
  });
}
