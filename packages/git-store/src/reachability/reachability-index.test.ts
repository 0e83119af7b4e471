import assert from "node:assert/strict";
import { existsSync, fstatSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { buildRepository, git, temporaryFolder } from "../../test/git.test-kit.ts";
import { checkPackConnected } from "../connectivity.ts";
import { Repository } from "../repository/repository.ts";
import { numbersIn } from "./bitset.ts";
import type { ObjectGraph } from "./object-graph.ts";
import { ReachabilityIndex } from "./reachability-index.ts";
import { finish } from "../slices.ts";
import { reach } from "./walk.ts";

async function* oneChunk(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

/** A store that took the history in three packs, the later ones thin. */
async function grow(
  origin: string,
  path: string,
  format: "sha1" | "sha256",
  each?: (index: ReachabilityIndex, tip: string) => Promise<void>,
): Promise<{ repository: Repository; index: ReachabilityIndex; tips: string[] }> {
  const repository = await Repository.init(path, { format });
  const index = ReachabilityIndex.open(repository.objects);
  const tips: string[] = [];
  for (const name of ["main~20", "main~7", "main"]) {
    const tip = git(origin, ["rev-parse", name]).toString().trim();
    const input = `${tip}\n${tips.map((oid) => `^${oid}\n`).join("")}`;
    const pack = git(origin, ["pack-objects", "-q", "--revs", "--thin", "--stdout"], input);
    await repository.receivePack(oneChunk(pack), { threads: 0 });
    tips.push(tip);
    index.refresh();
    await each?.(index, tip);
  }
  return { repository, index, tips };
}

function reached(graph: ObjectGraph, oid: string): string[] {
  const set = graph.numbers.emptySet();
  finish(reach(graph, [graph.numbers.numberOfOid(oid)], set));
  return [...numbersIn(set)].map((number) => graph.numbers.oidOf(number)).toSorted();
}

function reachedByGit(path: string, oid: string): string[] {
  return git(path, ["rev-list", "--objects", "--no-object-names", oid])
    .toString()
    .trim()
    .split("\n")
    .toSorted();
}

for (const format of ["sha1", "sha256"] as const) {
  test(`ReachabilityIndex finds all reachable objects, also without bitmaps (${format})`, async () => {
    using folder = temporaryFolder();
    const origin = buildRepository(folder.path, format);
    const { repository, index } = await grow(
      origin,
      join(folder.path, "store.git"),
      format,
      async (grown, tip) => {
        await grown.cover([tip]);
      },
    );
    const bare = ReachabilityIndex.open(repository.objects);
    for (const graph of [index.acquire(), bare.acquire()]) {
      for (const oid of git(origin, ["rev-list", "main"]).toString().trim().split("\n")) {
        assert.deepEqual(reached(graph, oid), reachedByGit(origin, oid));
      }
    }
  });
}

test("persist writes files that stock git accepts, and the next open reads no objects", async () => {
  using folder = temporaryFolder();
  const origin = buildRepository(folder.path);
  const path = join(folder.path, "store.git");
  const { repository, index, tips } = await grow(origin, path, "sha1", async (grown, tip) => {
    await grown.cover([tip], { history: true });
    await grown.persist();
  });
  const files = readdirSync(join(path, "objects/pack")).map((name) => name.split(".").at(-1));
  assert.deepEqual(
    ["bitmap", "reach"].map((kind) => files.filter((name) => name === kind).length),
    [1, 2],
  );
  assert.ok(existsSync(join(path, "objects/info/commit-graph")));
  await repository.replaceRefs([{ name: "refs/heads/main", oid: tips.at(-1)! }]);
  git(path, ["fsck", "--full", "--strict"]);
  git(path, ["commit-graph", "verify"]);

  index.close();
  const again = await ReachabilityIndex.openInSlices(repository.objects);
  const graph = again.acquire();
  assert.equal(graph.bitmaps.unsaved.size, 0, "every file was read");
  for (const tip of tips) {
    assert.ok(graph.bitmaps.has(graph.numbers.numberOfOid(tip)));
    assert.deepEqual(reached(graph, tip), reachedByGit(origin, tip));
  }
  assert.equal(await again.cover(tips), 0);
});

test("ReachabilityIndex passes over files that are damaged or belong to other packs", async () => {
  using folder = temporaryFolder();
  const origin = buildRepository(folder.path);
  const path = join(folder.path, "store.git");
  const { repository, tips } = await grow(origin, path, "sha1", async (grown, tip) => {
    await grown.cover([tip]);
    await grown.persist();
  });
  const packs = join(path, "objects/pack");
  const own = readdirSync(packs).filter((name) => /\.(?:reach|bitmap)$/u.test(name));
  const [first, second] = own.filter((name) => name.endsWith(".reach")) as [string, string];
  writeFileSync(join(packs, first), readFileSync(join(packs, second)));
  for (const damage of [() => undefined, flipOne, cut, remove]) {
    for (const name of [...own.map((file) => join(packs, file)), join(path, "objects/info/commit-graph")])
      damage(name);
    const index = ReachabilityIndex.open(repository.objects);
    const graph = index.acquire();
    for (const tip of tips) assert.deepEqual(reached(graph, tip), reachedByGit(origin, tip));
    graph.release();
    index.close();
  }
});

function flipOne(path: string): void {
  const bytes = readFileSync(path);
  bytes[bytes.length >> 1]! ^= 1;
  rmSync(path);
  writeFileSync(path, bytes);
}

function cut(path: string): void {
  writeFileSync(path, readFileSync(path).subarray(0, 30));
}

function remove(path: string): void {
  rmSync(path);
}

for (const method of ["refresh", "refreshInSlices"] as const) {
  test(`what was acquired stays readable when the packs are replaced (${method})`, () =>
    assertReadableAfterReplacement(method));
}

test("openInSlices ends with the signal's reason", async () => {
  using folder = temporaryFolder();
  const repository = await Repository.open(
    buildRepository(folder.path, "sha1", { commits: 1500, files: 60 }),
  );
  const reason = new Error("stop");
  const opening = ReachabilityIndex.openInSlices(repository.objects, {}, AbortSignal.abort(reason));
  await assert.rejects(opening, reason);
  repository.close();
});

async function assertReadableAfterReplacement(method: "refresh" | "refreshInSlices"): Promise<void> {
  using folder = temporaryFolder();
  const origin = buildRepository(folder.path);
  const path = join(folder.path, "store.git");
  const { repository, index, tips } = await grow(origin, path, "sha1");
  const tip = tips.at(-1)!;
  await repository.replaceRefs([{ name: "refs/heads/main", oid: tip }]);
  const old = index.acquire();
  git(path, ["repack", "-adq"]);
  repository.objects.refresh();
  await index[method]();
  const fresh = index.acquire();
  assert.notEqual(fresh, old);
  assert.equal(fresh.numbers.packs.length, 1);
  assert.equal(old.numbers.packs.length, 3);
  for (const graph of [old, fresh]) assert.deepEqual(reached(graph, tip), reachedByGit(origin, tip));
  const { fd } = old.numbers.packs[0]!.pack;
  old.release();
  assert.throws(() => fstatSync(fd), { code: "EBADF" }, "the last release closes the packs");
}

test("a pack that is added changes no number", async () => {
  using folder = temporaryFolder();
  const origin = buildRepository(folder.path);
  const before = new Map<string, number>();
  const { index } = await grow(origin, join(folder.path, "store.git"), "sha1", async (grown) => {
    const graph = grown.acquire();
    for (const [oid, number] of before) assert.equal(graph.numbers.numberOfOid(oid), number);
    for (const { pack } of graph.numbers.packs) {
      for (let position = 0; position < pack.count; position++) {
        const oid = pack.oidAt(position);
        before.set(oid, graph.numbers.numberOfOid(oid));
      }
    }
    graph.release();
  });
  const graph = index.acquire();
  assert.equal(before.size, new Set(before.values()).size);
  for (const [oid, number] of before) assert.equal(graph.numbers.oidOf(number), oid);
});

test("checkPackConnected reads the objects that cover did not walk, and only these", async () => {
  using folder = temporaryFolder();
  const origin = buildRepository(folder.path, "sha1", { commits: 8 });
  const tip = git(origin, ["rev-parse", "main"]).toString().trim();
  // A tree of a blob that is missing, which no commit refers to.
  const tree = git(origin, ["mktree", "--missing"], `100644 blob ${"1".repeat(40)}\tfile\n`)
    .toString()
    .trim();
  const reachable = git(origin, ["rev-list", "--objects", "--no-object-names", tip]).toString();
  const repository = await Repository.init(join(folder.path, "part.git"));
  const pack = git(origin, ["pack-objects", "--stdout", "-q"], `${reachable}${tree}\n`);
  const { name } = await repository.receivePack(oneChunk(pack), { threads: 0 });
  const index = ReachabilityIndex.open(repository.objects);
  const walked = index.emptySet();
  await index.cover([tip], { walked });
  const isWalked = index.isWalked(name, walked);
  const [received] = repository.objects.packs;
  assert.ok(received !== undefined);
  const unread = Array.from({ length: received.count }, (_, at) => at).filter((at) => !isWalked(at));
  assert.deepEqual(
    unread.map((at) => received.oidAt(at)),
    [tree],
  );
  assert.throws(() => checkPackConnected(repository.objects, received, { isWalked }), {
    code: "missing_object",
  });
  const all = (): boolean => true;
  assert.doesNotThrow(() => checkPackConnected(repository.objects, received, { isWalked: all }));
  assert.equal(index.isWalked("pack-of-another-store", walked)(0), false);
  index.close();
  repository.close();
});
