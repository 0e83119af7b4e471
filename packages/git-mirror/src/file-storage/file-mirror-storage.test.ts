import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
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
