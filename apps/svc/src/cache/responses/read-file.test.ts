import assert from "node:assert/strict";
import { closeSync, openSync, readdirSync, readlinkSync } from "node:fs";
import { readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { tempFolder, type TempFolder } from "@devplat/testkit";
import { readAt } from "./file-io.ts";
import { ReadFile } from "./read-file.ts";

for (const isWarm of [false, true]) {
  describe(`ReadFile, ${isWarm ? "opened a moment ago" : "opened for the first time"}`, () => {
    let folder: TempFolder;
    let count = 0;
    before(async () => (folder = await tempFolder("read-file")));
    after(async () => folder.remove());

    it("opens the file that has the name now, not an earlier one", async () => {
      const path = join(folder.path, String(count++));
      await writeFile(path, "old");
      const old = await ReadFile.open(path, isWarm);
      await writeFile(`${path}~`, "replaced");
      await rename(`${path}~`, path);
      const current = await ReadFile.open(path, isWarm);
      assert.equal(await textOf(old), "old");
      assert.equal(await textOf(current), "replaced");
      assert.equal(current?.facts.size, "replaced".length);
      await Promise.all([old?.close(), current?.close()]);
    });

    it("has nothing for a removed file, and refuses a symbolic link", async () => {
      const path = join(folder.path, String(count++));
      await writeFile(path, "text");
      await symlink(path, `${path}.link`);
      await assert.rejects(async () => ReadFile.open(`${path}.link`, isWarm), { code: "ELOOP" });
      await rm(path);
      assert.equal(await ReadFile.open(path, isWarm), undefined);
    });

    it("closes its descriptor once, and never that of another file", async () => {
      const path = join(folder.path, String(count++));
      await writeFile(path, "text");
      const file = await ReadFile.open(path, isWarm);
      assert.ok(file !== undefined);
      await file.close();
      assert.deepEqual(descriptorsOf(path), []);
      const other = openSync(path, "r");
      assert.equal(other, file.fd, "the number is free again, and given to the next file");
      await file.close();
      await assert.rejects(file.stat(), /closed/);
      await assert.rejects(file.utimes(1, 1), /closed/);
      assert.deepEqual(descriptorsOf(path), [other]);
      closeSync(other);
    });

    it("sets the times of the file, and closes a large one", async () => {
      const path = join(folder.path, String(count++));
      await writeFile(path, Buffer.alloc(3_000_000));
      const file = await ReadFile.open(path, isWarm);
      await file?.utimes(1000, 2000);
      assert.equal((await stat(path)).mtimeMs, 2_000_000);
      assert.equal((await file?.stat())?.mtimeMs, 2_000_000);
      await file?.close();
      assert.deepEqual(descriptorsOf(path), []);
      assert.equal((await readFile(path)).length, 3_000_000);
    });
  });
}

async function textOf(file: ReadFile | undefined): Promise<string> {
  const bytes = Buffer.alloc(100);
  const count = await readAt(file?.fd ?? -1, bytes, bytes.length, 0);
  return bytes.toString("utf8", 0, count);
}

function descriptorsOf(path: string): number[] {
  return readdirSync("/proc/self/fd")
    .map(Number)
    .filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`) === path;
      } catch {
        return false;
      }
    });
}
