import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { allObjects, buildRepository, git, temporaryFolder } from "../test/git.test-kit.ts";
import { GitStoreError } from "./errors.ts";
import { ObjectDatabase } from "./object-database.ts";

test("ObjectDatabase.read never gives a wrong object of a pack with a flipped bit", () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path, "sha1", { commits: 12 });
  const objects = allObjects(path);
  const truth = new Map(objects.map(({ oid, type }) => [oid, git(path, ["cat-file", type, oid])]));
  const name = readdirSync(join(path, "objects/pack")).find((file) => file.endsWith(".pack"))!;
  const file = join(path, "objects/pack", name);
  const good = readFileSync(file);
  let faults = 0;
  for (let bit = 96; bit < (good.length - 20) * 8; bit += 241) {
    const bad = Buffer.from(good);
    bad[bit >> 3]! ^= 1 << (bit & 7);
    rmSync(file);
    writeFileSync(file, bad);
    const database = ObjectDatabase.open(join(path, "objects"));
    for (const { oid } of objects) {
      try {
        assert.deepEqual(database.read(oid).content, truth.get(oid));
      } catch (error) {
        assert.ok(error instanceof GitStoreError, `bit ${bit}: ${String(error)}`);
        faults++;
      }
    }
    database.close();
  }
  assert.ok(faults > 20, `only ${faults} faults were met`);
});
