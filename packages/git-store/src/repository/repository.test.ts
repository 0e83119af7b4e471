import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { ObjectFormat } from "@devplat/git-protocol";
import { buildRepository, git, temporaryFolder } from "../../test/git.test-kit.ts";
import { checkPackConnected, checkPresent } from "../connectivity.ts";
import { temporaryName } from "./leftovers.ts";
import { Repository } from "./repository.ts";

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

for (const format of ["sha1", "sha256"] satisfies ObjectFormat[]) {
  test(`Repository with a full and an incremental pack equals stock git's (${format})`, async () => {
    using folder = temporaryFolder();
    const source = buildRepository(folder.path, format, { commits: 60 });
    const old = git(source, ["rev-parse", "main~10"]).toString().trim();
    const path = join(folder.path, "copy.git");
    const repository = await Repository.init(path, {
      format,
      config: { "svc.host": 'https://a.example/"x"' },
    });
    await repository.receivePack(
      once(git(source, ["pack-objects", "--stdout", "--revs", "-q"], `${old}\n`)),
      { threads: 0 },
    );
    await repository.replaceRefs([{ name: "refs/heads/main", oid: old }]);
    assert.match(git(path, ["fsck", "--full", "--strict"]).toString(), /^$/u);
    const thin = git(
      source,
      ["pack-objects", "--stdout", "--revs", "--thin", "-q"],
      `main\nv1\nlight\n^${old}\n`,
    );
    const received = await repository.receivePack(once(thin), { threads: 0 });
    assert.ok(received.completed > 0);
    for (const pack of repository.objects.packs) checkPackConnected(repository.objects, pack);
    const refs = git(source, ["for-each-ref", "--format=%(refname) %(objectname)"])
      .toString()
      .trim()
      .split("\n")
      .map((line) => ({ name: line.split(" ")[0]!, oid: line.split(" ")[1]! }));
    checkPresent(
      repository.objects,
      refs.map(({ oid }) => oid),
    );
    await repository.replaceRefs(refs);
    assert.equal(git(path, ["fsck", "--full", "--strict"]).toString(), "");
    assert.deepEqual(git(path, ["show-ref", "-d"]), git(source, ["show-ref", "-d"]));
    assert.deepEqual(
      git(path, ["rev-list", "--objects", "--all"]),
      git(source, ["rev-list", "--objects", "--all"]),
    );
    assert.equal(git(path, ["config", "svc.host"]).toString(), 'https://a.example/"x"\n');
    assert.equal(git(path, ["symbolic-ref", "HEAD"]).toString(), "refs/heads/main\n");
    const clone = join(folder.path, "clone");
    git(folder.path, ["clone", "-q", path, clone]);
    repository.close();
    const again = await Repository.open(path);
    assert.equal(again.format, format);
    assert.equal(again.config("svc.host"), 'https://a.example/"x"');
    assert.equal(
      (await again.refs()).get("refs/tags/v1")?.peeled,
      git(source, ["rev-parse", "v1^{}"]).toString().trim(),
    );
    again.close();
  });
}

test("checkPackConnected names the missing object and the object that refers to it", async () => {
  using folder = temporaryFolder();
  const source = buildRepository(folder.path, "sha1", { commits: 20 });
  const tip = git(source, ["rev-parse", "main"]).toString().trim();
  const parent = git(source, ["rev-parse", "main~1"]).toString().trim();
  const repository = await Repository.init(join(folder.path, "part.git"));
  // The last commit with all its trees and files, but no history.
  const objects = git(source, ["rev-list", "--objects", "--no-object-names", "--no-walk", tip]);
  const { name } = await repository.receivePack(
    once(git(source, ["pack-objects", "--stdout", "-q"], objects)),
    { threads: 0 },
  );
  const pack = repository.objects.packs.find((candidate) => candidate.name === name)!;
  assert.throws(
    () => checkPackConnected(repository.objects, pack),
    (error: Error) => {
      assert.match(error.message, new RegExp(`${parent}.*${tip}`, "u"));
      return "code" in error && error.code === "missing_object";
    },
  );
  checkPackConnected(repository.objects, pack, { shallow: new Set([tip]) });
  assert.throws(() => checkPresent(repository.objects, [parent]), { code: "missing_object" });
  repository.close();
});

for (const kind of ["tree", "blob"]) {
  test(`checkPackConnected throws missing_object when a ${kind} is missing`, async () => {
    using folder = temporaryFolder();
    const source = buildRepository(folder.path, "sha1", { commits: 8 });
    const all = git(source, [
      "cat-file",
      "--batch-all-objects",
      "--batch-check=%(objectname) %(objecttype)",
    ]).toString();
    const lines = all.trim().split("\n");
    const left = lines.find((line) => line.endsWith(kind))!;
    const list = lines
      .filter((line) => line !== left)
      .map((line) => line.split(" ")[0])
      .join("\n");
    const repository = await Repository.init(join(folder.path, "part.git"));
    await repository.receivePack(once(git(source, ["pack-objects", "--stdout", "-q"], `${list}\n`)), {
      threads: 0,
    });
    assert.throws(() => checkPackConnected(repository.objects, repository.objects.packs[0]!), {
      code: "missing_object",
      details: { oid: left.split(" ")[0] },
    });
    repository.close();
  });
}

test("checkPackConnected does not ask for the commit of a submodule", async () => {
  using folder = temporaryFolder();
  const source = join(folder.path, "source.git");
  git(folder.path, ["init", "-q", "--bare", source]);
  const tree = git(source, ["mktree", "--missing"], `160000 commit ${"1".repeat(40)}\tsub\n`)
    .toString()
    .trim();
  const commit = git(source, ["commit-tree", "-m", "sub", tree]).toString().trim();
  const repository = await Repository.init(join(folder.path, "copy.git"));
  await repository.receivePack(
    once(git(source, ["pack-objects", "--stdout", "--revs", "-q"], `${commit}\n`)),
    { threads: 0 },
  );
  assert.doesNotThrow(() => checkPackConnected(repository.objects, repository.objects.packs[0]!));
  repository.close();
});

test("Repository.refs reads what stock git wrote, loose over packed", async () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path);
  const [first, second] = ["main", "main~1"].map((name) => git(path, ["rev-parse", name]).toString().trim());
  git(path, ["update-ref", "refs/heads/a/b", second!]);
  git(path, ["pack-refs", "--all"]);
  git(path, ["update-ref", "refs/heads/a/b", first!]);
  git(path, ["update-ref", "refs/heads/loose", second!]);
  git(path, ["symbolic-ref", "refs/heads/symbolic", "refs/heads/main"]);
  const repository = await Repository.open(path);
  const refs = await repository.refs();
  assert.equal(refs.get("refs/heads/a/b")?.oid, first);
  assert.equal(refs.get("refs/heads/loose")?.oid, second);
  assert.equal(refs.has("refs/heads/symbolic"), false);
  await repository.replaceRefs([{ name: "refs/heads/only", oid: first! }]);
  assert.equal(
    git(path, ["for-each-ref", "--format=%(refname)", "refs/heads/loose", "refs/heads/only"]).toString(),
    "refs/heads/only\n",
  );
  repository.close();
});

test("Repository.head gives the ref or commit that stock git has set", async () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path);
  const repository = await Repository.open(path);
  const oid = git(path, ["rev-parse", "main~2"]).toString().trim();
  assert.deepEqual(await repository.head(), { ref: "refs/heads/main" });
  git(path, ["update-ref", "--no-deref", "HEAD", oid]);
  assert.deepEqual(await repository.head(), { oid });
  git(path, ["symbolic-ref", "HEAD", "refs/heads/other"]);
  assert.deepEqual(await repository.head(), { ref: "refs/heads/other" });
  repository.close();
});

test("Repository.replaceRefs refuses invalid names and ids, and changes nothing", async () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path);
  const repository = await Repository.open(path);
  const before = await repository.refs();
  const oid = "1".repeat(40);
  for (const name of [
    "refs/heads/../../x",
    "heads/main",
    "refs/heads/a b",
    "refs/heads/x.lock",
    "refs/heads/\n",
    "",
  ]) {
    await assert.rejects(repository.replaceRefs([{ name, oid }]), { code: "bad_ref_name" }, name);
  }
  await assert.rejects(repository.replaceRefs([{ name: "refs/heads/x", oid: "zz" }]), { code: "bad_oid" });
  assert.deepEqual(await repository.refs(), before);
  repository.close();
});

test("Repository.init writes config values that stock git reads", async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "r.git");
  const config = { "svc.a": "1", "svc.b": ' # two; "quoted"\n\\' };
  const repository = await Repository.init(path, { config });
  assert.equal(repository.config("svc.b"), config["svc.b"]);
  repository.close();
  assert.equal(git(path, ["config", "svc.b"]).toString(), `${config["svc.b"]}\n`);
  assert.equal(git(path, ["config", "svc.a"]).toString(), "1\n");
  assert.equal(git(path, ["config", "core.bare"]).toString(), "true\n");
});

test("Repository.init on a half made one completes it, on a finished one opens it", async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "r.git");
  (await Repository.init(path, { format: "sha256" })).close();
  const again = await Repository.init(path, { format: "sha1" });
  assert.equal(again.format, "sha256");
  again.close();
  rmSync(join(path, "HEAD"));
  await assert.rejects(Repository.open(path), { code: "not_a_repository" });
  const completed = await Repository.init(path, { format: "sha256" });
  assert.equal(git(path, ["rev-parse", "--is-bare-repository"]).toString(), "true\n");
  completed.close();
});

const CONFIGS: [name: string, code: string, text: string][] = [
  ["format version 2", "unsupported_repository", "[core]\nrepositoryformatversion = 2\n"],
  [
    "an unknown extension",
    "unsupported_repository",
    "[core]\nrepositoryformatversion = 1\n[extensions]\nrefStorage = reftable\n",
  ],
  [
    "an unknown object format",
    "unsupported_repository",
    "[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = sha3\n",
  ],
  ["a line that is not a config line", "corrupt_repository", "[core]\n= 3\n"],
  ["an open quote", "corrupt_repository", '[core]\nx = "abc\n'],
  ["a value before any section", "corrupt_repository", "x = 1\n"],
];

for (const [name, code, text] of CONFIGS) {
  test(`Repository.open of a config with ${name} throws ${code}`, async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, "r.git");
    (await Repository.init(path)).close();
    writeFileSync(join(path, "config"), text);
    await assert.rejects(Repository.open(path), { code });
  });
}

test("Repository.open of a folder that is none throws not_a_repository", async () => {
  using folder = temporaryFolder();
  await assert.rejects(Repository.open(folder.path), { code: "not_a_repository" });
});

test("Repository.removeLeftovers removes only files of ended processes", async () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path);
  const repository = await Repository.open(path);
  const packs = join(path, "objects/pack");
  const mine = temporaryName("pack");
  const [machine, , instance] = mine.split("_")[2]!.split(".");
  const files = {
    mine,
    sameMachineDead: `tmp_pack_${machine}.4194304.${instance}_00aa`,
    myPidEarlierLife: `tmp_idx_${machine}.${process.pid}.0123456789ab_00aa`,
    elsewhereNew: "tmp_pack_0123456789ab.77.0123456789ab_00aa",
    elsewhereOld: "tmp_rev_0123456789ab.77.0123456789ab_00ab",
    gitNew: "tmp_pack_abcdef",
    gitOld: "tmp_idx_abcdef",
    lockOld: "refs.lock~.0123456789ab",
    halfNew: `pack-${"1".repeat(40)}.pack`,
    halfOld: `pack-${"2".repeat(40)}.pack`,
  };
  for (const [kind, name] of Object.entries(files)) {
    writeFileSync(join(packs, name), "");
    if (kind.endsWith("Old")) utimesSync(join(packs, name), 1, 1);
  }
  const before = new Set(readdirSync(packs));
  const removed = await repository.removeLeftovers();
  const gone = [...before].filter((name) => !existsSync(join(packs, name)));
  const expected = [
    files.sameMachineDead,
    files.myPidEarlierLife,
    files.elsewhereOld,
    files.gitOld,
    files.lockOld,
    files.halfOld,
  ];
  assert.deepEqual(gone.toSorted(), expected.toSorted());
  assert.deepEqual(removed.toSorted(), expected.map((name) => join(packs, name)).toSorted());
  assert.equal(git(path, ["fsck", "--full"]).toString(), "");
  repository.close();
});

test("Repository.receivePack whose pack is at fault leaves the repository as it was", async () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path);
  const repository = await Repository.open(path);
  const packs = join(path, "objects/pack");
  const before = readdirSync(packs);
  const good = readFileSync(
    join(
      packs,
      before.find((name) => name.endsWith(".pack"))!,
    ),
  );
  await assert.rejects(repository.receivePack(once(good.subarray(0, 1000))), { code: "truncated" });
  assert.deepEqual(readdirSync(packs), before);
  repository.close();
});

test("Repository.quarantinePack takes a corrupt pack out, and keeps its files", async () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path);
  const repository = await Repository.open(path);
  const { name, path: pack } = repository.objects.packs[0]!;
  const { oid } = (await repository.refs()).get("refs/heads/main")!;
  const files = readdirSync(join(path, "objects/pack")).filter((file) => file.startsWith(name));
  await repository.quarantinePack(name);
  assert.equal(existsSync(pack), false);
  assert.equal(repository.objects.has(oid), false);
  assert.deepEqual(readdirSync(join(path, "corrupt")).toSorted(), files.toSorted());
  repository.close();
});

test("Repository.refs refuses something else in place of refs or packed-refs", async () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path, "sha1");
  git(path, ["pack-refs", "--all"]);
  const repository = await Repository.open(path);
  renameSync(join(path, "refs"), join(path, "away"));
  await assert.rejects(repository.refs(), { code: "ENOENT" });
  writeFileSync(join(path, "refs"), "");
  await assert.rejects(repository.refs(), { code: "ENOTDIR" });
  rmSync(join(path, "refs"));
  renameSync(join(path, "away"), join(path, "refs"));
  rmSync(join(path, "packed-refs"));
  mkdirSync(join(path, "packed-refs"));
  await assert.rejects(repository.refs(), { code: "EISDIR" });
  repository.close();
});

test("Repository.withFolder shares the tables of packs and reads further objects", async () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path, "sha1");
  const repository = await Repository.open(path);
  const other = join(folder.path, "other.git");
  git(folder.path, ["init", "-q", "--bare", other]);
  const oid = git(other, ["hash-object", "-w", "--stdin"], "new").toString().trim();
  const view = repository.withFolder(join(other, "objects"));
  assert.equal(view.objects.read(oid).content.toString(), "new");
  assert.equal(repository.objects.has(oid), false);
  assert.deepEqual(
    view.objects.packs.map(({ index }) => index.bytes.buffer),
    repository.objects.packs.map(({ index }) => index.bytes.buffer),
  );
  view.close();
  repository.close();
});
