import assert from "node:assert/strict";
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import type { ObjectFormat } from "@devplat/git-protocol";
import { allObjects, buildRepository, git, temporaryFolder } from "../test/git.test-kit.ts";
import { ObjectDatabase } from "./object-database.ts";

for (const format of ["sha1", "sha256"] satisfies ObjectFormat[]) {
  test(`ObjectDatabase reads every object of a ${format} repository as stock git does`, () => {
    using folder = temporaryFolder();
    const path = buildRepository(folder.path, format);
    const database = ObjectDatabase.open(join(path, "objects"), { format });
    const objects = allObjects(path);
    assert.ok(objects.length > 200);
    for (const { oid, type, size } of objects) {
      assert.ok(database.has(oid));
      assert.deepEqual(database.info(oid), { type, size });
      const object = database.read(oid);
      assert.equal(object.type, type);
      assert.equal(object.content.length, size);
    }
    const blob = objects.find(({ type }) => type === "blob")!;
    assert.deepEqual(database.read(blob.oid).content, git(path, ["cat-file", "blob", blob.oid]));
    database.close();
  });
}

test("ObjectDatabase with caches of almost nothing reads the same", () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path);
  const database = ObjectDatabase.open(join(path, "objects"), { pageCacheBytes: 1, baseCacheBytes: 0 });
  for (const { oid, type } of allObjects(path)) assert.equal(database.read(oid).type, type);
  database.close();
});

test("ObjectDatabase reads loose and packed objects", () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path);
  const loose = git(path, ["hash-object", "-w", "--stdin"], "loose\n").toString().trim();
  const database = ObjectDatabase.open(join(path, "objects"));
  assert.equal(database.find(loose), undefined);
  assert.ok(database.has(loose));
  assert.ok(database.hasBytes(Buffer.from(loose, "hex"), 0));
  assert.deepEqual(database.read(loose), { type: "blob", content: Buffer.from("loose\n") });
  assert.deepEqual(database.info(loose), { type: "blob", size: 6 });
  assert.equal(database.has("0".repeat(40)), false);
  database.close();
});

test("ObjectDatabase.read throws missing_object, and bad_oid for an invalid id", () => {
  using folder = temporaryFolder();
  const database = ObjectDatabase.open(join(buildRepository(folder.path), "objects"));
  assert.throws(() => database.read("1".repeat(40)), { code: "missing_object" });
  assert.throws(() => database.read("../../../../etc/passwd"), { code: "bad_oid" });
  assert.throws(() => database.read("A".repeat(40)), { code: "bad_oid" });
  database.close();
});

test("ObjectDatabase.refresh sees packs that came and packs that went", () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path);
  const database = ObjectDatabase.open(join(path, "objects"));
  const before = allObjects(path);
  const added = git(path, ["hash-object", "-w", "--stdin"], "added\n").toString().trim();
  git(path, ["repack", "-dq"]);
  git(path, ["pack-objects", "-q", "objects/pack/pack"], `${added}\n`);
  git(path, ["prune-packed", "-q"]);
  assert.equal(database.find(added), undefined);
  assert.equal(database.refresh(), true);
  assert.equal(database.packs.length, 2);
  assert.equal(database.packs[0], database.find(added)?.pack, "the newest pack is not the first");
  assert.equal(database.read(added).content.toString(), "added\n");
  assert.equal(database.refresh(), false);
  const gone = database.find(added)!.pack.path;
  rmSync(gone.replace(/pack$/u, "idx"));
  assert.equal(database.refresh(), true);
  assert.equal(database.has(added), false);
  for (const { oid } of before) assert.ok(database.has(oid));
  database.close();
});

test("ObjectDatabase reads without .rev what it reads with it", () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path);
  const packs = join(path, "objects", "pack");
  const pack = readdirSync(packs).find((name) => name.endsWith(".pack"))!;
  const without = ObjectDatabase.open(join(path, "objects"));
  const expected = without.packs[0]!.order;
  without.close();
  rmSync(join(packs, pack.replace(/pack$/u, "rev")), { force: true });
  git(path, ["index-pack", "--rev-index", join(packs, pack)]);
  assert.ok(existsSync(join(packs, pack.replace(/pack$/u, "rev"))));
  const database = ObjectDatabase.open(join(path, "objects"));
  assert.deepEqual(database.packs[0]!.order, expected);
  database.close();
});

test("ObjectDatabase.attach reads in a worker thread over the same tables", async () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path);
  const database = ObjectDatabase.open(join(path, "objects"));
  const oids = allObjects(path).map(({ oid }) => oid);
  const worker = new Worker(
    `const { workerData, parentPort } = require("node:worker_threads");
     import(workerData.module).then(({ ObjectDatabase }) => {
       const database = ObjectDatabase.attach(workerData.shared);
       for (const oid of workerData.oids) database.read(oid);
       parentPort.postMessage(database.packs[0].index.bytes.buffer instanceof SharedArrayBuffer);
     });`,
    {
      eval: true,
      workerData: {
        module: new URL("object-database.ts", import.meta.url).href,
        shared: database.shared(),
        oids,
      },
    },
  );
  const reply = await new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
  assert.equal(reply, true);
  await worker.terminate();
  database.close();
});

test("ObjectDatabase.attach after the pack was replaced reads from the new one", () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path);
  const database = ObjectDatabase.open(join(path, "objects"));
  const shared = database.shared();
  git(path, ["repack", "-adfq", "--depth=2"]);
  assert.equal(existsSync(database.packs[0]!.path), false);
  const attached = ObjectDatabase.attach(shared);
  for (const { oid, type } of allObjects(path)) {
    assert.equal(attached.read(oid).type, type);
    // An open pack stays readable though its file is gone.
    assert.equal(database.read(oid).type, type);
  }
  attached.close();
  database.close();
});

test("ObjectDatabase.open of an index of another pack throws corrupt_index", () => {
  using folder = temporaryFolder();
  using other = temporaryFolder();
  const paths = [buildRepository(folder.path), buildRepository(other.path, "sha1", { seed: 2 })];
  const [first, second] = paths.map((path) => {
    const name = readdirSync(join(path, "objects/pack")).find((file) => file.endsWith(".idx"))!;
    return join(path, "objects/pack", name);
  });
  rmSync(first!);
  copyFileSync(second!, first!);
  assert.throws(() => ObjectDatabase.open(join(paths[0]!, "objects")), { code: "corrupt_index" });
});

test("ObjectDatabase.refresh throws the path of a damaged pack, reads the others", () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path);
  const database = ObjectDatabase.open(join(path, "objects"));
  const { oid } = allObjects(path)[0]!;
  const bad = join(path, "objects/pack", `pack-${"0".repeat(40)}.pack`);
  writeFileSync(bad, "PACK");
  writeFileSync(bad.replace(/pack$/u, "idx"), "");
  assert.throws(() => database.refresh(), {
    code: "corrupt_index",
    details: { path: bad.replace(/pack$/u, "idx") },
  });
  assert.ok(database.read(oid));
  rmSync(bad.replace(/pack$/u, "idx"));
  assert.equal(database.refresh(), false);
  database.close();
});

test("ObjectDatabase.read throws corrupt_object if the index has another object", () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path);
  const database = ObjectDatabase.open(join(path, "objects"));
  const { index } = database.packs[0]!;
  const blobs = allObjects(path).filter(({ type }) => type === "blob");
  const [first, second] = [blobs[0]!.oid, blobs[1]!.oid];
  // Exchange the CRCs and offsets of two objects in the .idx, which nothing but their content can tell.
  const bytes = Buffer.from(index.bytes);
  for (const table of [8 + 1024 + index.count * 20, 8 + 1024 + index.count * 24]) {
    const at = (oid: string): number => table + index.find(Buffer.from(oid, "hex")) * 4;
    const [a, b] = [bytes.readUInt32BE(at(first)), bytes.readUInt32BE(at(second))];
    bytes.writeUInt32BE(b, at(first));
    bytes.writeUInt32BE(a, at(second));
  }
  const file = database.packs[0]!.path.replace(/pack$/u, "idx");
  database.close();
  rmSync(file);
  writeFileSync(file, bytes);
  const exchanged = ObjectDatabase.open(join(path, "objects"));
  assert.throws(() => exchanged.read(first), { code: "corrupt_object", details: { oid: first } });
  assert.equal(exchanged.read(blobs[2]!.oid).type, "blob");
  exchanged.close();
});

test("skipFaulty leaves out a pack whose index cannot be read, and only that", () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path);
  const packs = join(path, "objects/pack");
  const intact = ObjectDatabase.open(join(path, "objects"));
  const { name } = intact.packs[0]!;
  intact.close();
  const other = `pack-${"0".repeat(40)}`;
  writeFileSync(join(packs, `${other}.pack`), readFileSync(join(packs, `${name}.pack`)));
  writeFileSync(join(packs, `${other}.idx`), "damaged");
  assert.throws(() => ObjectDatabase.open(join(path, "objects")), { code: "corrupt_index" });
  const database = ObjectDatabase.open(join(path, "objects"), { skipFaulty: true });
  assert.deepEqual(
    database.packs.map((pack) => pack.name),
    [name],
  );
  database.close();
});
