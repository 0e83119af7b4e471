import { open, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createLogger, ifExists, systemClock } from "@devplat/base";
import { tempFolder } from "@devplat/testkit";
import { FaultLog } from "../fault-log.ts";
import { FileResponseStore } from "./file-response-store.ts";
import { ResponseFolders } from "./response-folders.ts";
import { responseStoreSuite } from "./response-store.suite.ts";
import { Slices } from "./slices.ts";

const HOST_URL = "https://code.example";

const FORMS = [
  { name: "files", separateTrailers: false },
  { name: "files with trailers of their own", separateTrailers: true },
];
for (const { name: form, separateTrailers } of FORMS)
  responseStoreSuite(form, async () => {
    const folder = await tempFolder("svc-responses");
    const reopen = (hostUrl = HOST_URL): FileResponseStore =>
      new FileResponseStore({
        folders: new ResponseFolders(folder.path, hostUrl),
        hostUrl,
        slices: new Slices(),
        separateTrailers,
        packs: { openPack: async (_id, name) => ifExists(open(join(folder.path, `${name}.pack`), "r")) },
        stopping: new AbortController().signal,
        faults: new FaultLog(createLogger({ destination: { write: () => undefined } })),
        clock: systemClock,
      });
    return {
      store: reopen(),
      reopen,
      damage: async (id, key, position) => {
        const path = new ResponseFolders(folder.path, HOST_URL).path(id);
        const handle = await open(join(path, key), "r+");
        const { atimeMs, mtimeMs } = await handle.stat();
        await handle.write(Buffer.from([255]), 0, 1, position);
        // As programs do that restore a file from a backup.
        await handle.utimes(atimeMs / 1000, mtimeMs / 1000);
        await handle.close();
      },
      putPack: async (name, bytes) => {
        await writeFile(join(folder.path, `${name}.pack`), bytes);
      },
      removePack: async (name) => unlink(join(folder.path, `${name}.pack`)),
      end: async () => folder.remove(),
    };
  });
