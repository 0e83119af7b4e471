import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { tempFolder, type TempFolder } from "@devplat/testkit";
import { readBaseFile } from "./base-file.ts";

describe("readBaseFile", () => {
  let folder: TempFolder;
  let mountpoint = "";
  before(async () => {
    folder = await tempFolder("base-file");
    mountpoint = join(folder.path, "mnt");
    await mkdir(mountpoint);
    await writeFile(join(folder.path, "base"), "a: 1\n");
    await writeFile(join(mountpoint, "inside"), "secret\n");
  });
  after(() => folder.remove());
  const read = (name: string): Promise<string> =>
    readBaseFile(`~/${name}`, folder.path, mountpoint).then(({ bytes }) => bytes.toString());

  it("reads a file, also over links", async () => {
    assert.equal(await read("base"), "a: 1\n");
    await symlink("base", join(folder.path, "link"));
    assert.equal(await read("link"), "a: 1\n");
  });

  it("has another signature after a change", async () => {
    const original = await readBaseFile("~/base", folder.path, mountpoint);
    await writeFile(join(folder.path, "base"), "a: 22\n");
    const changed = await readBaseFile("~/base", folder.path, mountpoint);
    assert.notEqual(changed.signature, original.signature);
    assert.ok(Math.abs(changed.modifiedMs - Date.now()) < 60_000);
  });

  it("refuses links that lead into the mount, before it touches the mount", async () => {
    await symlink("mnt/inside", join(folder.path, "in"));
    await symlink("mnt", join(folder.path, "folder"));
    await symlink("in", join(folder.path, "twice"));
    // The folder above the mountpoint has another name too.
    await symlink(folder.path, `${folder.path}-alias`);
    const alias = join(`${folder.path}-alias`, "mnt/inside");
    for (const path of ["~/in", "~/folder/inside", "~/twice", "~/mnt/inside", alias])
      await assert.rejects(readBaseFile(path, folder.path, mountpoint), {
        message: `cannot read the base file ${path}: it leads into the mount`,
      });
    execFileSync("rm", [`${folder.path}-alias`]);
  });

  it("refuses everything that is not a small regular file", async () => {
    execFileSync("mkfifo", [join(folder.path, "fifo")]);
    await writeFile(join(folder.path, "large"), Buffer.alloc(1024 * 1024 + 1));
    await writeFile(join(folder.path, "largest"), Buffer.alloc(1024 * 1024));
    await symlink("loop", join(folder.path, "loop"));
    await assert.rejects(read("fifo"), /it is not a regular file/);
    await assert.rejects(read("."), /it is a folder|not a regular file/);
    await assert.rejects(read("absent"), /cannot read the base file ~\/absent: it does not exist/);
    await assert.rejects(read("base/x"), /on the way is not a folder|cannot be looked at/);
    await assert.rejects(read("large"), /it is larger than 1 MiB/);
    await assert.rejects(read("loop"), /more than 16 links/);
    assert.equal((await read("largest")).length, 1024 * 1024);
  });
});
