import assert from "node:assert/strict";
import {
  chmod,
  chown,
  mkdir,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  unlink,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { createLogger } from "@devplat/base";
import { tempFolder, until, type TempFolder } from "@devplat/testkit";
import { closedFolder } from "./group-access.ts";
import { groupIdOf } from "./group-id.ts";
import { HandedFiles, type PlainFile } from "./handed-files.ts";
import { HandedFolderRefused } from "./handed-folder-refused.ts";
import { isLoopbackPeer } from "./loopback-peer.ts";

const KEEP_MS = 90_000;
const logger = createLogger({ destination: { write: () => undefined } });

describe("files that are handed to a web server", () => {
  let folder: TempFolder;
  let handed = "";
  const open = (groupId?: number): HandedFiles =>
    new HandedFiles({ storagePath: folder.path, folderName: "_accel", groupId, logger });
  const plain = async (name: string, text: string): Promise<PlainFile> => {
    const path = join(folder.path, name);
    await writeFile(path, text);
    return { path, inode: (await stat(path)).ino };
  };
  beforeEach(async () => {
    folder = await tempFolder("handed");
    handed = join(folder.path, "_accel");
  });
  afterEach(async () => folder.remove());

  it("stay readable after they were removed, and go after 90 s", async (context) => {
    context.mock.timers.enable({ apis: ["setTimeout"] });
    const files = open();
    const file = await plain("a", "content");
    const name = (await files.handOver(file)) ?? "";
    assert.match(name, /^[0-9a-f]{32}$/);
    await unlink(file.path);
    context.mock.timers.tick(KEEP_MS - 1);
    assert.equal(await readFile(join(handed, name), "utf8"), "content");
    context.mock.timers.tick(1);
    await until(async () => (await readdir(handed)).length === 0);
  });

  it("of an earlier process go 90 s after the start", async (context) => {
    await open().handOver(await plain("a", "content"));
    context.mock.timers.enable({ apis: ["setTimeout"] });
    await open().prepare();
    context.mock.timers.tick(KEEP_MS - 1);
    assert.equal((await readdir(handed)).length, 1);
    context.mock.timers.tick(1);
    await until(async () => (await readdir(handed)).length === 0);
  });

  it("have one name for several requests, and another one for another file", async () => {
    const files = open();
    const file = await plain("a", "content");
    const name = await files.handOver(file);
    assert.equal(await files.handOver(file), name);
    await rename((await plain("b", "other")).path, file.path);
    assert.equal(await files.handOver({ ...file, inode: file.inode + 1_000_000 }), undefined);
    const other = await files.handOver({ path: file.path, inode: (await stat(file.path)).ino });
    assert.notEqual(other, name);
    assert.equal((await readdir(handed)).length, 2);
  });

  it("are not handed over when they are gone", async () => {
    const file = await plain("a", "content");
    await unlink(file.path);
    await assert.rejects(open().handOver(file), { code: "ENOENT" });
  });

  it("come into a folder that is made again, after it was removed or closed", async () => {
    const files = open();
    const file = await plain("a", "content");
    const first = await files.handOver(file);
    await rm(handed, { recursive: true });
    const second = (await files.handOver(file)) ?? "";
    assert.notEqual(second, first);
    assert.equal(await readFile(join(handed, second), "utf8"), "content");
    await unlink(join(handed, second));
    const third = (await files.handOver(file)) ?? "";
    assert.equal(await readFile(join(handed, third), "utf8"), "content");
    await chmod(handed, 0);
    assert.equal(await files.handOver(file), third);
    assert.equal((await stat(handed)).mode & 0o777, 0o700);
  });

  it("have their group again, after their folder was closed to it", async () => {
    const groupId = (await stat(folder.path)).gid;
    const files = open(groupId);
    const file = await plain("a", "content");
    await files.handOver(file);
    for (const path of [handed, folder.path]) await chmod(path, 0o700);
    await files.handOver(file);
    const modes = await Promise.all(
      [handed, folder.path].map(async (path) => (await stat(path)).mode & 0o777),
    );
    assert.deepEqual(modes, [0o750, 0o710]);
  });

  it("do not go through a symbolic link, whose target stays as it is", async () => {
    const foreign = join(folder.path, "foreign");
    await mkdir(foreign, { mode: 0o700 });
    await writeFile(join(foreign, "file"), "");
    const files = open((await stat(folder.path)).gid);
    const file = await plain("a", "content");
    await symlink(foreign, handed);
    await assert.rejects(files.handOver(file), { message: /_accel is a symbolic link: remove it$/ });
    await unlink(handed);
    await files.handOver(file);
    await rm(handed, { recursive: true });
    await symlink(foreign, handed);
    await assert.rejects(files.handOver(file), HandedFolderRefused);
    assert.equal((await stat(foreign)).mode & 0o777, 0o700);
    assert.deepEqual(await readdir(foreign), ["file"]);
    await writeFile(join(folder.path, "b"), "");
    await unlink(handed);
    await rename(join(folder.path, "b"), handed);
    await assert.rejects(files.handOver(file), { message: /_accel is not a folder: remove it$/ });
  });

  it(
    "do not go into a folder of another user",
    { skip: process.getuid?.() !== 0 && "needs root" },
    async () => {
      const files = open((await stat(folder.path)).gid);
      const file = await plain("a", "content");
      await mkdir(handed, { mode: 0o700 });
      await chown(handed, 12_345, 12_345);
      await assert.rejects(files.handOver(file), { message: /_accel belongs to the user 12345, / });
      const { gid, mode } = await stat(handed);
      assert.deepEqual([gid, mode & 0o777, await readdir(handed)], [12_345, 0o700, []]);
    },
  );

  it("show the folder that a group cannot go through", async () => {
    const [outer, inner] = [join(folder.path, "outer"), join(folder.path, "outer/inner")];
    await mkdir(inner, { recursive: true, mode: 0o755 });
    const { gid } = await stat(outer);
    // The folder of the test is open to its owner only.
    assert.equal(await closedFolder(inner, gid + 1), folder.path);
    assert.equal(await closedFolder("/", gid + 1), undefined);
  });
});

describe("the group of files", () => {
  it("is found by name or number, and malformed lines are not taken", async () => {
    const folder = await tempFolder("groups");
    const file = join(folder.path, "group");
    await writeFile(file, "root:x:0:\nshort:x\nodd:x:1x:\nweb:x:33:svc\n\n::5:\n");
    for (const [group, id] of [
      ["root", 0],
      ["web", 33],
      ["34", 34],
      ["short", undefined],
      ["odd", undefined],
      ["we", undefined],
      ["web:x", undefined],
    ] as const) {
      assert.equal(await groupIdOf(group, file), id, group);
    }
    assert.equal(await groupIdOf("web", join(folder.path, "none")), undefined);
    await folder.remove();
  });
});

it("only a loopback address or a Unix socket is a loopback peer", () => {
  for (const [remoteAddress, localAddress, destroyed, expected] of [
    ["127.0.0.1", "127.0.0.1", false, true],
    ["127.9.8.7", "127.0.0.1", false, true],
    ["::1", "::1", false, true],
    ["::ffff:127.0.0.1", "::ffff:127.0.0.1", false, true],
    // A Unix socket.
    [undefined, undefined, false, true],
    [undefined, undefined, true, false],
    ["127.0.0.1", "127.0.0.1", true, false],
    ["10.0.0.1", "10.0.0.2", false, false],
    ["::ffff:10.0.0.1", "::1", false, false],
    ["127.0.0.1.example", "::1", false, false],
    ["1127.0.0.1", "::1", false, false],
    [undefined, "10.0.0.2", false, false],
  ] as const) {
    const peer = { remoteAddress, localAddress, destroyed } as Parameters<typeof isLoopbackPeer>[0];
    assert.equal(isLoopbackPeer(peer), expected, JSON.stringify([remoteAddress, localAddress, destroyed]));
  }
});
