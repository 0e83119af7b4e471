import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync, chmodSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { decodeFetchRequest } from "@devplat/git-protocol";
import { buildRepository, git, temporaryFolder, tryGit } from "../../test/git.test-kit.ts";
import { blobOid, noiseOf, PackBuilder, simpleDelta } from "../../test/pack-builder.test-kit.ts";
import { ReachabilityIndex } from "../reachability/reachability-index.ts";
import { Repository } from "../repository/repository.ts";
import { uploadPackV2Fetch } from "../serve/upload-pack.ts";
import { prepareRepack, publishRepack } from "./repack.ts";
import { MAX_CHAIN_DEPTH } from "./deep-deltas.ts";

async function* oneChunk(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

const idOf = (origin: string, name: string): string => git(origin, ["rev-parse", name]).toString().trim();
const packFiles = (path: string, kind: string): string[] =>
  readdirSync(join(path, "objects/pack")).filter((name) => name.endsWith(`.${kind}`));

/** Creates a store that received the history in steps, as thin packs after the first. */
async function grow(
  origin: string,
  path: string,
  steps: readonly string[],
  format: "sha1" | "sha256" = "sha1",
): Promise<Repository> {
  const repository = await Repository.init(path, { format });
  const index = ReachabilityIndex.open(repository.objects);
  const have: string[] = [];
  for (const name of steps) {
    const tip = idOf(origin, name);
    const input = `${tip}\n${have.map((oid) => `^${oid}\n`).join("")}`;
    const pack = git(origin, ["pack-objects", "-q", "--revs", "--thin", "--stdout"], input);
    await repository.receivePack(oneChunk(pack), { threads: 0 });
    have.push(tip);
    index.refresh();
    await index.cover([tip]);
    await index.persist();
    await repository.replaceRefs([{ name: "refs/heads/main", oid: tip }]);
  }
  index.close();
  return repository;
}

const STEPS = Array.from({ length: 14 }, (_, at) => (at === 13 ? "main" : `main~${26 - 2 * at}`));

for (const format of ["sha1", "sha256"] as const) {
  test(`a repack keeps every object, and git fsck finds no fault (${format})`, async () => {
    using folder = temporaryFolder();
    const origin = buildRepository(folder.path, format);
    const path = join(folder.path, "store.git");
    const repository = await grow(origin, path, STEPS, format);
    const before = git(path, ["cat-file", "--batch-all-objects", "--batch-check"]).toString();
    const tip = idOf(origin, "main");
    const prepared = await prepareRepack(path, repository.objects, { tips: [tip] });
    assert.ok(prepared !== undefined);
    assert.equal(packFiles(path, "pack").length, STEPS.length, "nothing changes before it is published");
    assert.equal(await publishRepack(path, prepared), true);
    repository.objects.refresh();
    assert.equal(packFiles(path, "pack").length, STEPS.length - prepared.replaces.length + 1);
    assert.equal(git(path, ["cat-file", "--batch-all-objects", "--batch-check"]).toString(), before);
    git(path, ["fsck", "--full", "--strict"]);
    git(path, ["commit-graph", "verify"]);
    git(path, ["index-pack", "--verify", "--rev-index", join("objects/pack", `${prepared.name}.pack`)]);
    assert.equal(existsSync(prepared.folder), false);
    repository.close();
  });
}

test("a repack writes bitmaps for the tips, so that later requests need no walk", async () => {
  using folder = temporaryFolder();
  const origin = buildRepository(folder.path);
  const path = join(folder.path, "store.git");
  const repository = await grow(origin, path, STEPS);
  const tip = idOf(origin, "main");
  const prepared = await prepareRepack(path, repository.objects, { tips: [tip] });
  assert.ok(prepared !== undefined && (await publishRepack(path, prepared)));
  repository.objects.refresh();
  const index = ReachabilityIndex.open(repository.objects);
  const graph = index.acquire();
  assert.equal(graph.bitmaps.unsaved.size, 0);
  assert.ok(graph.bitmaps.has(graph.numbers.numberOfOid(tip)));
  graph.release();
  index.close();
  repository.close();
});

test("a repack brings no commit-graph that names commits of a removed pack", async () => {
  for (const isRemoved of [false, true]) {
    using folder = temporaryFolder();
    const origin = buildRepository(folder.path);
    const path = join(folder.path, "store.git");
    const repository = await grow(origin, path, ["main~10", "main~2", "main~1", "main"]);
    const hasGraph = (): boolean => existsSync(join(path, "objects/info/commit-graph"));
    await repository.removeCommitGraph();
    const tips = [idOf(origin, "main")];
    const prepared = await prepareRepack(path, repository.objects, { tips });
    assert.ok(prepared !== undefined && prepared.kept.length > 0);
    assert.equal(hasGraph(), false, "nothing changes before it is published");
    if (isRemoved) for (const name of prepared.kept) await repository.removePack(name);
    assert.equal(await publishRepack(path, prepared), true);
    assert.equal(hasGraph(), !isRemoved);
    if (!isRemoved) git(path, ["commit-graph", "verify"]);
    repository.close();
  }
});

test("with keep, one pack remains that contains only reachable objects", async () => {
  using folder = temporaryFolder();
  const origin = buildRepository(folder.path);
  const path = join(folder.path, "store.git");
  const repository = await grow(origin, path, STEPS);
  const old = idOf(origin, "main~6");
  await repository.replaceRefs([{ name: "refs/heads/main", oid: old }]);
  const prepared = await prepareRepack(path, repository.objects, { tips: [old], keep: [old] });
  assert.ok(prepared !== undefined && prepared.dropped > 0);
  await publishRepack(path, prepared);
  assert.equal(packFiles(path, "pack").length, 1);
  const left = git(path, ["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]).toString();
  const expected = git(origin, ["rev-list", "--objects", "--no-object-names", old]).toString();
  assert.deepEqual(left.trim().split("\n").toSorted(), expected.trim().split("\n").toSorted());
  git(path, ["fsck", "--full", "--strict"]);
  git(path, ["commit-graph", "verify"]);
  repository.objects.refresh();
  assert.equal(await prepareRepack(path, repository.objects, { tips: [], keep: [old] }), undefined);
  repository.close();
});

test("a running response is the same when its packs are replaced", async () => {
  using folder = temporaryFolder();
  const origin = buildRepository(folder.path, "sha1", { commits: 200 });
  const path = join(folder.path, "store.git");
  const steps = Array.from({ length: 9 }, (_, at) => (at === 8 ? "main" : `main~${80 - 10 * at}`));
  const repository = await grow(origin, path, steps);
  const index = ReachabilityIndex.open(repository.objects);
  const refs = await repository.refs();
  const args = [`want ${idOf(origin, "main")}`, "ofs-delta", "no-progress", "done"];
  const request = decodeFetchRequest({ command: "fetch", capabilities: [], args }, "sha1");
  const graph = index.acquire();
  const expected: Buffer[] = [];
  for await (const chunk of uploadPackV2Fetch(graph, request, { refs })) expected.push(chunk);
  const given: Buffer[] = [];
  let replaced = false;
  for await (const chunk of uploadPackV2Fetch(graph, request, { refs })) {
    given.push(chunk);
    if (replaced) continue;
    replaced = true;
    const prepared = await prepareRepack(path, repository.objects, { tips: [], factor: 1e9 });
    assert.ok(prepared !== undefined && (await publishRepack(path, prepared)));
    repository.objects.refresh();
    await index.refreshInSlices();
    assert.equal(packFiles(path, "pack").length, 1);
  }
  graph.release();
  assert.ok(Buffer.concat(given).equals(Buffer.concat(expected)));
  index.close();
  repository.close();
});

test("delta chains stay within the limit when many packs are merged", async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "store.git");
  const repository = await Repository.init(path);
  const versions = 130;
  let content = noiseOf(400);
  for (let version = 0; version < versions; version++) {
    const builder = new PackBuilder();
    if (version === 0) builder.object("blob", content);
    else {
      const next = Buffer.from(content);
      next[(version * 7) % 400]! ^= 0xff;
      builder.refDelta(blobOid(content), simpleDelta(content, next));
      content = next;
    }
    await repository.receivePack(oneChunk(builder.finish()), { threads: 0 });
  }
  const prepared = await prepareRepack(path, repository.objects, { tips: [], factor: 1e9 });
  assert.ok(prepared !== undefined);
  await publishRepack(path, prepared);
  const verified = git(path, ["verify-pack", "-v", join("objects/pack", `${prepared.name}.idx`)]).toString();
  const depths = [...verified.matchAll(/^chain length = (\d+):/gmu)].map(([, depth]) => Number(depth));
  assert.equal(Math.max(...depths), MAX_CHAIN_DEPTH);
  assert.match(verified, /^non delta: 3 objects$/mu);
  git(path, ["cat-file", "-e", blobOid(content)]);
  repository.close();
});

test("a damaged pack is not merged, and no temporary file is left", async () => {
  using folder = temporaryFolder();
  const origin = buildRepository(folder.path);
  const path = join(folder.path, "store.git");
  const repository = await grow(origin, path, STEPS);
  for (const pack of repository.objects.packs) {
    chmodSync(pack.path, 0o644);
    const bytes = readFileSync(pack.path);
    bytes[bytes.length - 40]! ^= 0x40;
    writeFileSync(pack.path, bytes);
  }
  const preparing = prepareRepack(path, repository.objects, { tips: [], factor: 1e9 });
  await assert.rejects(preparing, { name: "GitStoreError" });
  assert.deepEqual(
    readdirSync(path).filter((name) => name.startsWith("tmp_")),
    [],
  );
  assert.equal(packFiles(path, "pack").length, STEPS.length);
  repository.close();
});

test("publishing stops when a pack to replace no longer exists", async () => {
  using folder = temporaryFolder();
  const origin = buildRepository(folder.path);
  const path = join(folder.path, "store.git");
  const repository = await grow(origin, path, STEPS);
  const prepared = await prepareRepack(path, repository.objects, { tips: [], factor: 1e9 });
  assert.ok(prepared !== undefined);
  rmSync(join(path, "objects/pack", `${prepared.replaces[0]}.idx`));
  assert.equal(await publishRepack(path, prepared), false);
  assert.ok(!packFiles(path, "pack").includes(`${prepared.name}.pack`));
  repository.close();
});

test("a crash between any two steps of publishing loses no object", async () => {
  using folder = temporaryFolder();
  const origin = buildRepository(folder.path);
  const path = join(folder.path, "store.git");
  const repository = await grow(origin, path, STEPS);
  const tip = idOf(origin, "main");
  const prepared = await prepareRepack(path, repository.objects, { tips: [tip], factor: 1e9 });
  assert.ok(prepared !== undefined);
  const stop = new Error("crash");
  await assert.rejects(
    publishRepack(path, prepared, () => Promise.reject(stop)),
    stop,
  );
  // The merged pack and the packs to replace both exist.
  assert.equal(packFiles(path, "idx").length, STEPS.length + 1);
  assert.equal(tryGit(path, ["fsck", "--full", "--strict"]).status, 0);
  repository.objects.refresh();
  const again = await prepareRepack(path, repository.objects, { tips: [tip], factor: 1e9 });
  assert.ok(again !== undefined && (await publishRepack(path, again)));
  assert.equal(packFiles(path, "idx").length, 1);
  git(path, ["fsck", "--full", "--strict"]);
  repository.close();
});
