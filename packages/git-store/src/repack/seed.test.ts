import assert from "node:assert/strict";
import { mkdirSync, readdirSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { buildRepository, git, temporaryFolder, tryGit } from "../../test/git.test-kit.ts";
import { Repository } from "../repository/repository.ts";
import { prepareSeed, SEED_KINDS, type PreparedSeed, type ShownRefs } from "./seed.ts";

const ALL = { minShare: 0.05, last: undefined };

async function* oneChunk(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

const idOf = (origin: string, name: string): string => git(origin, ["rev-parse", name]).toString().trim();

/** Makes a commit on top of another one. */
function commitAt(origin: string, parent: string, seconds: number, branch: string): string {
  const tree = idOf(origin, `${parent}^{tree}`);
  const person = `A <a@example.org> ${seconds} +0000`;
  const text = `tree ${tree}\nparent ${parent}\nauthor ${person}\ncommitter ${person}\n\n${branch}\n`;
  const oid = git(origin, ["hash-object", "-w", "-t", "commit", "--stdin"], text).toString().trim();
  git(origin, ["update-ref", `refs/heads/${branch}`, oid]);
  return oid;
}

/** The refs that the origin shows now. */
function shownBy(origin: string, youngSince = Infinity): ShownRefs {
  const lines = git(origin, ["for-each-ref", "--format=%(objectname) %(refname)"]).toString().trim();
  const refs = lines.split("\n").map((line) => ({ oid: line.split(" ")[0]!, name: line.split(" ")[1]! }));
  return { refs, head: idOf(origin, "HEAD"), headRef: "refs/heads/main", youngSince };
}

/** A store that received these revisions one after another, each as a thin pack. */
async function grow(
  origin: string,
  path: string,
  revisions: readonly string[],
  format: "sha1" | "sha256" = "sha1",
): Promise<Repository> {
  const repository = await Repository.init(path, { format });
  const have: string[] = [];
  for (const revision of revisions) {
    const input = `${revision}\n${have.map((oid) => `^${oid}\n`).join("")}`;
    const pack = git(origin, ["pack-objects", "-q", "--revs", "--thin", "--stdout"], input);
    await repository.receivePack(oneChunk(pack), { threads: 0 });
    have.push(revision);
  }
  return repository;
}

/** Moves the files of a seed into a new repository, as a client does. */
function intoClient(folder: string, files: string, seed: PreparedSeed, format: string): string {
  const client = join(folder, "client.git");
  git(folder, ["init", "-q", "--bare", "-b", "main", `--object-format=${format}`, client]);
  mkdirSync(join(client, "objects", "info"), { recursive: true });
  for (const kind of ["pack", "idx", "rev"]) {
    renameSync(join(files, `${seed.name}.${kind}`), join(client, "objects", "pack", `${seed.name}.${kind}`));
  }
  renameSync(join(files, `${seed.name}.graph`), join(client, "objects", "info", "commit-graph"));
  for (const { name, oid } of seed.refs) git(client, ["update-ref", name, oid]);
  return client;
}

for (const format of ["sha1", "sha256"] as const) {
  test(`a seed has exactly the objects of its refs, and stock git takes it (${format})`, async () => {
    using folder = temporaryFolder();
    const origin = buildRepository(folder.path, format);
    const beyond = commitAt(origin, idOf(origin, "main"), 1_800_000_000, "beyond");
    const steps = ["main~20", "main~8", "main", "v1"].map((name) => idOf(origin, name));
    const repository = await grow(origin, join(folder.path, "store.git"), [...steps, beyond], format);
    const files = join(folder.path, "seed");
    mkdirSync(files);
    const shown = shownBy(origin, 1_790_000_000);
    const seed = await prepareSeed(files, repository.objects, { ...ALL, shown });
    repository.close();
    assert.ok(seed !== undefined);
    assert.deepEqual(
      seed.refs.map(({ name }) => name),
      ["refs/heads/main", "refs/tags/light", "refs/tags/v1"],
    );
    assert.deepEqual(seed.tips, [idOf(origin, "main"), idOf(origin, "v1")].toSorted());
    assert.deepEqual(
      readdirSync(files).toSorted(),
      SEED_KINDS.map((kind) => `${seed.name}.${kind}`).toSorted(),
    );
    for (const kind of SEED_KINDS) {
      assert.equal(statSync(join(files, `${seed.name}.${kind}`)).size, seed.files[kind].size);
    }
    const client = intoClient(folder.path, files, seed, format);
    const stored = git(client, ["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]).toString();
    const reached = git(origin, ["rev-list", "--objects", "--no-object-names", ...seed.tips]).toString();
    assert.deepEqual(stored.trim().split("\n").toSorted(), reached.trim().split("\n").toSorted());
    assert.equal(stored.trim().split("\n").length, seed.objects);
    assert.equal(tryGit(client, ["fsck", "--full", "--strict"]).stderr, "");
    assert.equal(tryGit(client, ["commit-graph", "verify"]).status, 0);
    const fetch = ["-c", "protocol.version=2", "fetch", "-q", origin, "refs/heads/main:refs/heads/main"];
    const { stderr } = tryGit(client, ["-c", "alias.traced=!GIT_TRACE_PACKET=1 git", "traced", ...fetch]);
    assert.match(stderr, /ls-refs/);
    assert.doesNotMatch(stderr, /> want(?:-ref)? /);
  });
}

test("a seed of a store with just its objects in one pack is a hard link to that pack", async () => {
  using folder = temporaryFolder();
  const origin = buildRepository(folder.path);
  const repository = await Repository.open(origin);
  const files = join(folder.path, "seed");
  mkdirSync(files);
  const seed = await prepareSeed(files, repository.objects, { ...ALL, shown: shownBy(origin) });
  const [pack] = repository.objects.packs;
  repository.close();
  assert.ok(seed !== undefined && pack !== undefined);
  assert.equal(seed.name, pack.name);
  const inode = (path: string): number => statSync(path).ino;
  assert.equal(inode(join(files, `${seed.name}.pack`)), inode(pack.path));
  assert.equal(tryGit(origin, ["fsck", "--full", "--strict"]).status, 0);
});

test("a seed is made only when more than the share of objects is new", async () => {
  using folder = temporaryFolder();
  const origin = buildRepository(folder.path);
  const main = idOf(origin, "main");
  const repository = await Repository.open(origin);
  const shown = { ...shownBy(origin), refs: [] };
  const made = async (options: object): Promise<PreparedSeed | undefined> => {
    const files = join(folder.path, `seed-${performance.now()}`);
    mkdirSync(files);
    return await prepareSeed(files, repository.objects, { ...ALL, shown, ...options });
  };
  const first = await made({});
  assert.ok(first !== undefined);
  const count = (revision: string): number =>
    Number(git(origin, ["rev-list", "--objects", "--count", revision]).toString());
  assert.equal(first.objects, count("main"));
  const older = idOf(origin, "main~2");
  const last = { tips: [older], objects: count("main~2") };
  const share = (count("main") - last.objects) / last.objects;
  assert.equal(await made({ last, minShare: share }), undefined);
  assert.ok((await made({ last, minShare: share * 0.99 })) !== undefined);
  assert.equal(await made({ last: { tips: [main], objects: first.objects }, minShare: 0 }), undefined);
  repository.close();
});

test("no seed is made when HEAD's commit is not in the store", async () => {
  using folder = temporaryFolder();
  const origin = buildRepository(folder.path);
  const older = idOf(origin, "main~4");
  const repository = await grow(origin, join(folder.path, "store.git"), [older]);
  const files = join(folder.path, "seed");
  mkdirSync(files);
  assert.equal(await prepareSeed(files, repository.objects, { ...ALL, shown: shownBy(origin) }), undefined);
  assert.deepEqual(readdirSync(files), []);
  // A tag that is not here is left out.
  const shown = { ...shownBy(origin), head: older };
  const seed = await prepareSeed(files, repository.objects, { ...ALL, shown });
  assert.deepEqual(seed?.tips, [older]);
  repository.close();
});
