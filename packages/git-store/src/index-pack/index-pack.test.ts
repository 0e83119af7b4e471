import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { ObjectFormat } from "@devplat/git-protocol";
import { allObjects, buildRepository, git, temporaryFolder, tryGit } from "../../test/git.test-kit.ts";
import { blobOid, noiseOf, PackBuilder, simpleDelta } from "../../test/pack-builder.test-kit.ts";
import { ObjectDatabase } from "../object-database.ts";
import { encodePackHeader } from "../pack/pack-entry.ts";
import { PackIndex } from "../pack/pack-index.ts";
import { Control } from "./control.ts";
import { indexPack, type IndexedPack, type IndexPackOptions } from "./index-pack.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import { scanPack } from "./scan.ts";
import { sortByOid } from "./sort.ts";
import { IndexWorkers } from "./workers.ts";
import { writeIndex } from "./write-index.ts";

async function* chunks(bytes: Buffer, size = 65_536): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** Indexes bytes into a fresh `pack` folder. */
async function index(
  folder: string,
  bytes: Buffer,
  options: Partial<IndexPackOptions> = {},
): Promise<IndexedPack & { folder: string }> {
  const target = join(folder, `objects-${randomBytes(4).toString("hex")}`, "pack");
  mkdirSync(target, { recursive: true });
  return { ...(await indexPack(chunks(bytes), { folder: target, threads: 0, ...options })), folder: target };
}

/** Files that stock git writes for a pack. */
function gitIndex(
  folder: string,
  bytes: Buffer,
  format: ObjectFormat,
  ...more: string[]
): { idx: Buffer; rev: Buffer } {
  const name = join(folder, `git-${randomBytes(4).toString("hex")}`);
  writeFileSync(`${name}.pack`, bytes);
  git(folder, ["index-pack", "--rev-index", `--object-format=${format}`, ...more, `${name}.pack`]);
  return { idx: readFileSync(`${name}.idx`), rev: readFileSync(`${name}.rev`) };
}

function readPack(path: string): Buffer {
  const name = readdirSync(join(path, "objects/pack")).find((file) => file.endsWith(".pack"))!;
  return readFileSync(join(path, "objects/pack", name));
}

function onlyPack(result: IndexedPack, extension: string): Buffer {
  return readFileSync(result.packPath.replace(/pack$/u, extension));
}

for (const format of ["sha1", "sha256"] satisfies ObjectFormat[]) {
  test(`indexPack writes the same .idx and .rev as stock git for a ${format} pack`, async () => {
    using folder = temporaryFolder();
    const pack = readPack(buildRepository(folder.path, format));
    const result = await index(folder.path, pack, { format });
    const expected = gitIndex(folder.path, pack, format);
    assert.ok(onlyPack(result, "idx").equals(expected.idx));
    assert.ok(onlyPack(result, "rev").equals(expected.rev));
    assert.ok(onlyPack(result, "pack").equals(pack));
    assert.ok(result.deltas > 50);
    assert.deepEqual(
      readdirSync(result.folder).toSorted(),
      ["idx", "pack", "rev"].map((e) => `${result.name}.${e}`),
    );
  });
}

test("indexPack of ref-deltas in any order writes the .idx of stock git", async () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path);
  const oids = allObjects(path).map(({ oid }) => oid);
  // Without --delta-base-offset all deltas name their base.
  git(path, ["pack-objects", "-q", "--window=20", join(folder.path, "refs")], `${oids.join("\n")}\n`);
  const name = readdirSync(folder.path).find((file) => /^refs-.*\.pack$/u.test(file))!;
  const pack = readFileSync(join(folder.path, name));
  const result = await index(folder.path, pack);
  assert.ok(onlyPack(result, "idx").equals(gitIndex(folder.path, pack, "sha1").idx));
  assert.ok(result.deltas > 50);
});

test("indexPack takes a ref-delta whose base follows it in the pack", async () => {
  using folder = temporaryFolder();
  const [a, b, c] = ["first content\n", "first content, changed\n", "first content, changed twice\n"].map(
    (s) => Buffer.from(s),
  );
  const builder = new PackBuilder();
  builder.refDelta(blobOid(b!), simpleDelta(b!, c!));
  builder.refDelta(blobOid(a!), simpleDelta(a!, b!));
  builder.object("blob", a!);
  const result = await index(folder.path, builder.finish());
  assert.equal(result.deltas, 2);
  const database = ObjectDatabase.open(join(result.folder, ".."));
  for (const content of [a!, b!, c!]) assert.deepEqual(database.read(blobOid(content)).content, content);
  database.close();
});

for (const threads of [1, 2, 3]) {
  test(`indexPack with ${threads} worker threads and a slow stream finds the same`, async () => {
    using folder = temporaryFolder();
    const pack = readPack(buildRepository(folder.path, "sha1", { commits: 500, files: 700 }));
    assert.ok(pack.length > 600_000, `${pack.length} bytes are indexed without a thread`);
    const target = join(folder.path, "pack");
    mkdirSync(target);
    let sent = 0;
    async function* slow(): AsyncGenerator<Buffer> {
      for await (const chunk of chunks(pack, 30_011)) {
        yield chunk;
        sent += chunk.length;
        await new Promise(setImmediate);
      }
    }
    const result = await indexPack(slow(), { folder: target, threads });
    assert.equal(sent, pack.length);
    assert.ok(onlyPack(result, "idx").equals(gitIndex(folder.path, pack, "sha1").idx));
  });
}

test("IndexWorkers index packs in sequence and concurrently, also after a faulty pack", async () => {
  using folder = temporaryFolder();
  const pack = readPack(buildRepository(folder.path, "sha1", { commits: 20, files: 900 }));
  assert.ok(pack.length > 520_000, `${pack.length} bytes are indexed without a thread`);
  await using workers = new IndexWorkers();
  const options = { threads: 2, workers };
  await index(folder.path, pack, options);
  const bad = Buffer.from(pack);
  bad[pack.length - 1]! ^= 1;
  await assert.rejects(index(folder.path, bad, options), { code: "wrong_trailer" });
  const results = await Promise.all([1, 2, 3].map(() => index(folder.path, pack, options)));
  const expected = gitIndex(folder.path, pack, "sha1").idx;
  for (const result of results) assert.ok(onlyPack(result, "idx").equals(expected));
});

test("IndexWorkers with one thread index many packs, some aborted while they wait", async () => {
  using folder = temporaryFolder();
  const packs = Array.from({ length: 6 }, (_, i) => {
    const builder = new PackBuilder();
    builder.object("blob", `blob number ${i}`);
    return builder.finish();
  });
  await using workers = new IndexWorkers({ max: 1 });
  const stopped = new AbortController();
  async function* hanging(): AsyncGenerator<Buffer> {
    yield packs[0]!.subarray(0, 20);
    await new Promise(() => undefined);
  }
  const target = join(folder.path, "hanging");
  mkdirSync(target);
  // Holds the only thread until it is stopped.
  const holder = indexPack(hanging(), { folder: target, workers, signal: stopped.signal });
  const waiting = packs.map((pack, i) =>
    index(folder.path, pack, { threads: 3, workers, ...(i % 2 === 0 ? {} : { signal: stopped.signal }) }),
  );
  setTimeout(() => stopped.abort(new Error("enough")), 50);
  const results = await Promise.allSettled([holder, ...waiting]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ["rejected", "fulfilled", "rejected", "fulfilled", "rejected", "fulfilled", "rejected"],
  );
});

test("indexPack with windows of almost nothing finds the same", async () => {
  using folder = temporaryFolder();
  const pack = readPack(buildRepository(folder.path, "sha1", { commits: 120, files: 2 }));
  const result = await index(folder.path, pack, { deltaWindowBytes: 1, packWindowBytes: 1 });
  assert.ok(onlyPack(result, "idx").equals(gitIndex(folder.path, pack, "sha1").idx));
});

test("indexPack of bytes that come one by one finds the same", async () => {
  using folder = temporaryFolder();
  const pack = readPack(buildRepository(folder.path, "sha1", { commits: 3, files: 2 }));
  const target = join(folder.path, "pack");
  mkdirSync(target);
  const result = await indexPack(chunks(pack, 1), { folder: target, threads: 0 });
  assert.ok(onlyPack(result, "idx").equals(gitIndex(folder.path, pack, "sha1").idx));
});

test("indexPack of large blobs, as objects and as deltas, agrees with stock git", async () => {
  using folder = temporaryFolder();
  const builder = new PackBuilder();
  const zeros = Buffer.alloc(5_000_000);
  // Deterministic noise: a hash chain would do as well, but this is quick.
  const noise = Buffer.alloc(3_000_000);
  for (let i = 0, x = 1; i < noise.length; i++)
    noise[i] = (x = (Math.imul(x, 1_103_515_245) + 12_345) >>> 0) >>> 16;
  const changed = Buffer.concat([noise.subarray(0, 2_000_000), Buffer.from("!"), noise.subarray(2_000_000)]);
  const replaced = Buffer.from(noise.map((byte, i) => (i < 1_500_000 ? byte ^ 1 : byte)));
  builder.object("blob", zeros);
  const base = builder.object("blob", noise, 0);
  builder.ofsDelta(base, simpleDelta(noise, changed));
  builder.ofsDelta(base, simpleDelta(noise, replaced));
  const pack = builder.finish();
  const result = await index(folder.path, pack);
  assert.ok(onlyPack(result, "idx").equals(gitIndex(folder.path, pack, "sha1").idx));
});

test("indexPack of a pack without objects gives an empty index", async () => {
  using folder = temporaryFolder();
  const pack = new PackBuilder().finish();
  const result = await index(folder.path, pack);
  assert.equal(result.objects, 0);
  const database = ObjectDatabase.open(join(result.folder, ".."));
  assert.equal(database.packs[0]!.count, 0);
  assert.equal(database.has("0".repeat(40)), false);
  database.close();
});

test("indexPack completes a thin pack from the store, and git verifies it", async () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path, "sha1", { commits: 60 });
  const thin = git(
    path,
    ["pack-objects", "--thin", "--stdout", "--delta-base-offset", "--revs", "-q"],
    "main\n^main~20\n",
  );
  const old = git(path, ["pack-objects", "--stdout", "--revs", "-q"], "main~20\n");
  assert.notEqual(tryGit(folder.path, ["index-pack", "--stdin"], thin).status, 0, "the pack is not thin");
  const store = await index(folder.path, old);
  const bases = ObjectDatabase.open(join(store.folder, ".."));
  const result = await indexPack(chunks(thin), { folder: store.folder, bases, threads: 0 });
  assert.ok(result.completed > 0);
  const completed = onlyPack(result, "pack");
  assert.ok(onlyPack(result, "idx").equals(gitIndex(folder.path, completed, "sha1").idx));
  git(folder.path, ["verify-pack", result.packPath]);
  assert.equal(bases.refresh(), true);
  for (const { oid, type } of allObjects(path)) {
    if (type !== "tag") assert.equal(bases.read(oid).type, type);
  }
  bases.close();
});

test("indexPack of a thin pack finds the bases that only its other deltas bring", async () => {
  using folder = temporaryFolder();
  const [a, b, c] = ["one line\n", "one line\ntwo lines\n", "one line\ntwo lines\nthree\n"].map((s) =>
    Buffer.from(s),
  );
  const store = new PackBuilder();
  store.object("blob", a!);
  const stored = await index(folder.path, store.finish());
  const bases = ObjectDatabase.open(join(stored.folder, ".."));
  const thin = new PackBuilder();
  thin.refDelta(blobOid(b!), simpleDelta(b!, c!));
  thin.refDelta(blobOid(a!), simpleDelta(a!, b!));
  const result = await indexPack(chunks(thin.finish()), { folder: stored.folder, bases, threads: 0 });
  assert.deepEqual([result.objects, result.completed], [3, 1]);
  bases.close();
});

test("indexPack does not append a base that turns up in the pack itself", async () => {
  using folder = temporaryFolder();
  const [a, b, c] = ["one line\n", "one line\ntwo lines\n", "one line\ntwo lines\nthree\n"].map((s) =>
    Buffer.from(s),
  );
  const store = new PackBuilder();
  store.object("blob", a!);
  store.object("blob", b!);
  const stored = await index(folder.path, store.finish());
  const bases = ObjectDatabase.open(join(stored.folder, ".."));
  const thin = new PackBuilder();
  thin.refDelta(blobOid(b!), simpleDelta(b!, c!));
  thin.refDelta(blobOid(a!), simpleDelta(a!, b!));
  const result = await indexPack(chunks(thin.finish()), { folder: stored.folder, bases, threads: 0 });
  assert.deepEqual([result.objects, result.completed], [3, 1]);
  git(folder.path, ["verify-pack", result.packPath]);
  bases.close();
});

test("indexPack of a pack that is there already keeps it and leaves nothing else", async () => {
  using folder = temporaryFolder();
  const pack = readPack(buildRepository(folder.path, "sha1", { commits: 3 }));
  const first = await index(folder.path, pack);
  const before = statSync(first.packPath).ino;
  const second = await indexPack(chunks(pack), { folder: first.folder, threads: 0 });
  assert.equal(second.name, first.name);
  assert.equal(statSync(first.packPath).ino, before);
  assert.equal(readdirSync(first.folder).length, 3);
});

test("indexPack aborted while its source hangs rejects with the reason, stores nothing", async () => {
  using folder = temporaryFolder();
  const target = join(folder.path, "pack");
  mkdirSync(target);
  const controller = new AbortController();
  const pack = new PackBuilder();
  pack.object("blob", noiseOf(700_000));
  async function* hanging(): AsyncGenerator<Buffer> {
    yield pack.finish().subarray(0, 600_000);
    setImmediate(() => controller.abort(new Error("enough")));
    await new Promise(() => undefined);
  }
  await assert.rejects(indexPack(hanging(), { folder: target, signal: controller.signal }), {
    message: "enough",
  });
  assert.deepEqual(readdirSync(target), []);
});

test("indexPack of a source that fails rejects with its error and stores nothing", async () => {
  using folder = temporaryFolder();
  const target = join(folder.path, "pack");
  mkdirSync(target);
  async function* failing(): AsyncGenerator<Buffer> {
    yield encodePackHeader(5);
    throw new Error("connection lost");
  }
  await assert.rejects(indexPack(failing(), { folder: target }), { message: "connection lost" });
  assert.deepEqual(readdirSync(target), []);
});

test("indexPack with a worker stops a source as soon as its pack is at fault", async () => {
  using folder = temporaryFolder();
  const target = join(folder.path, "pack");
  mkdirSync(target);
  const head = Buffer.concat([encodePackHeader(2), Buffer.from([0x05, 1, 2, 3]), Buffer.alloc(600_000)]);
  async function* endless(): AsyncGenerator<Buffer> {
    yield head;
    for (;;) {
      yield Buffer.alloc(1000);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
  await assert.rejects(indexPack(endless(), { folder: target, threads: 2 }), { code: "bad_entry" });
  assert.deepEqual(readdirSync(target), []);
});

test("writeIndex puts large offsets into the table of 64-bit offsets as stock git does", () => {
  using folder = temporaryFolder();
  const pack = readPack(buildRepository(folder.path));
  const file = join(folder.path, "large.pack");
  writeFileSync(file, pack);
  const control = new Control();
  control.wrote(pack.length);
  control.end();
  const fd = openSync(file, "r");
  const oidsFromGit = gitIndex(folder.path, pack, "sha1", "--index-version=2,0x400").idx;
  const { tables, checksum } = scanPack(fd, control, {
    format: "sha1",
    limits: DEFAULT_LIMITS,
    detectCollisions: false,
  });
  closeSync(fd);
  // Only the scan ran: the ids of deltas come from git's own index.
  const known = new PackIndex(oidsFromGit, "sha1", file);
  for (let position = 0; position < known.count; position++) {
    const entry = tables.offsets.indexOf(known.offsetAt(position));
    tables.oids.set(Buffer.from(known.oidAt(position), "hex"), entry * 20);
  }
  writeIndex(join(folder.path, "ours.idx"), tables, sortByOid(tables), checksum, 0x401);
  const ours = readFileSync(join(folder.path, "ours.idx"));
  assert.ok(ours.equals(oidsFromGit));
  assert.ok(ours.length > known.count * 28 + 1072, "no offset was large");
});

test("indexPack of a pack made of an empty and a tiny object keeps them apart", async () => {
  using folder = temporaryFolder();
  const builder = new PackBuilder();
  builder.object("blob", "");
  builder.object("tree", "");
  builder.object("blob", "x", 0);
  const result = await index(folder.path, builder.finish());
  const database = ObjectDatabase.open(join(result.folder, ".."));
  assert.equal(database.read("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391").content.length, 0);
  assert.equal(database.read("4b825dc642cb6eb9a060e54bf8d69288fbee4904").type, "tree");
  assert.equal(database.read(blobOid("x")).content.toString(), "x");
  database.close();
});

test("indexPack with maxAheadBytes limits how far it reads ahead of the scan", async () => {
  using folder = temporaryFolder();
  const builder = new PackBuilder();
  for (let i = 0; i < 64; i++) builder.object("blob", noiseOf(65_536 + i));
  const pack = builder.finish();
  await using workers = new IndexWorkers({ max: 1 });
  const thread = await workers.take();
  const maxAheadBytes = 512 * 1024;
  const ahead = Promise.withResolvers<void>();
  let given = 0;
  const source = async function* (): AsyncGenerator<Buffer> {
    for await (const chunk of chunks(pack)) {
      given += chunk.length;
      if (given > maxAheadBytes) ahead.resolve();
      yield chunk;
    }
  };
  const target = join(folder.path, "pack");
  mkdirSync(target);
  const indexing = indexPack(source(), { folder: target, workers, maxAheadBytes });
  // No thread is free: nothing is scanned.
  await ahead.promise;
  for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(given < 2 * maxAheadBytes, `${given} bytes`);
  await workers.give(thread);
  assert.equal((await indexing).objects, 64);
  assert.equal(given, pack.length);
});
