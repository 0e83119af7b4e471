import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { readSealed, writeSealed } from "./sealed-file.ts";

describe("a sealed file", () => {
  let folder: string;
  let path: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "sealed-"));
    path = join(folder, "f.json");
  });
  after(() => rm(folder, { recursive: true }));

  it("returns the written content, and reports damage after a bit of it changed", async () => {
    const content = { packs: ["pack-1", "pack-2"], at: 7 };
    await writeSealed(path, content);
    assert.deepEqual(await readSealed(path), content);
    const bytes = await readFile(path);
    // The digest does not cover the line feed at the end.
    for (let bit = 0; bit < (bytes.length - 1) * 8; bit++) {
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      await writeFile(path, bytes);
      const read = await readSealed(path);
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      // If the name of the digest changed, the file reads like one of an earlier version.
      if (read !== "damaged")
        assert.ok(!("sha256" in Object(read)) && Object.keys(Object(read)).length === 3);
    }
  });

  it("is undefined if it is not there, and damaged if a folder has its place", async () => {
    assert.equal(await readSealed(join(folder, "none")), undefined);
    await mkdir(join(folder, "dir"));
    assert.equal(await readSealed(join(folder, "dir")), "damaged");
  });
});
