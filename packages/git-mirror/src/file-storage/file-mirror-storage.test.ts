import assert from "node:assert/strict";
import { chmod, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { it } from "node:test";
import { temporaryName } from "@devplat/git-store";
import { tempFolder } from "@devplat/testkit";
import { mirrorStorageSuite } from "../storage/suite.test-kit.ts";
import { createMirrorThreads } from "../threads/mirror-threads.ts";
import { FileMirrorStorage } from "./file-mirror-storage.ts";

mirrorStorageSuite("files", async () => {
  const folder = await tempFolder("file-mirror-storage");
  const threads = createMirrorThreads();
  threads.urgency.always();
  const backend = {
    now: Date.now(),
    open: (url: string) =>
      new FileMirrorStorage({
        root: folder.path,
        otherFolders: [],
        origin: { key: "test.origin", url },
        threads,
        detectCollisions: false,
        clock: { now: () => backend.now },
      }),
    damagePack: async ({ owner, name }: { owner: string; name: string }, pack: string): Promise<void> => {
      const path = join(folder.path, owner, `${name}.git`, "objects", "pack", `${pack}.pack`);
      const bytes = await readFile(path);
      bytes[bytes.length >> 1]! ^= 4;
      await chmod(path, 0o600);
      await writeFile(path, bytes);
    },
    stop: async () => {
      await threads.close();
      await folder.remove();
    },
  };
  return backend;
});

it("a start removes what a process left that was killed during a first fill", async () => {
  const folder = await tempFolder("file-mirror-leftovers");
  const threads = createMirrorThreads();
  const storage = new FileMirrorStorage({
    root: folder.path,
    otherFolders: [],
    origin: { key: "test.origin", url: "https://code.example" },
    threads,
    detectCollisions: false,
    clock: { now: Date.now },
  });
  const repository = await storage.repository({ owner: "org", name: "r", key: "org/r" }).create("sha1");
  repository.close();
  const packs = join(folder.path, "org", "r.git", "objects", "pack");
  const running = temporaryName("pack");
  // Linux gives no process this number.
  const dead = running.replace(`.${process.pid}.`, ".4194304.");
  for (const name of [running, dead]) await writeFile(join(packs, name), "part of a pack");
  await storage.removeLeftovers();
  assert.deepEqual(await readdir(packs), [running]);
  await threads.close();
  await folder.remove();
});
