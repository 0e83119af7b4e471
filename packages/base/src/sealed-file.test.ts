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

  it("gives back what was written, and nothing else once a bit of it changed", async () => {
    const content = { packs: ["pack-1", "pack-2"], at: 7 };
    await writeSealed(path, content);
    assert.deepEqual(await readSealed(path), content);
    const bytes = await readFile(path);
    // The line feed at the end is no part of it.
    for (let bit = 0; bit < (bytes.length - 1) * 8; bit++) {
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      await writeFile(path, bytes);
      const read = await readSealed(path);
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      // A changed name of the digest is as good as none: such a file is of an earlier version.
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
