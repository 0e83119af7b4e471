import assert from "node:assert/strict";
import { open, readdir, rename, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { TEMPORARY_SUFFIX, createLogger, ifExists, systemClock } from "@devplat/base";
import { tempFolder, type TempFolder } from "@devplat/testkit";
import { repositoryId } from "../../access/repository-id.ts";
import { FaultLog } from "../fault-log.ts";
import { GrowingSums } from "./block-sums.ts";
import { FileResponseStore } from "./file-response-store.ts";
import { ResponseFolders } from "./response-folders.ts";
import { responseStoreSuite } from "./response-store.suite.ts";
import { Slices } from "./slices.ts";

const HOST_URL = "https://code.example";

const CONTENT = Buffer.from("content");

function openStore(folder: TempFolder, separateTrailers: boolean, hostUrl = HOST_URL): FileResponseStore {
  return new FileResponseStore({
    folders: new ResponseFolders(folder.path, hostUrl),
    hostUrl,
    slices: new Slices(),
    separateTrailers,
    packs: { openPack: async (_id, name) => ifExists(open(join(folder.path, `${name}.pack`), "r")) },
    stopping: new AbortController().signal,
    packSuspected: () => undefined,
    faults: new FaultLog(createLogger({ destination: { write: () => undefined } })),
    clock: systemClock,
  });
}

const FORMS = [
  { name: "files", separateTrailers: false },
  { name: "files with trailers of their own", separateTrailers: true },
];
for (const { name: form, separateTrailers } of FORMS)
  responseStoreSuite(form, async () => {
    const folder = await tempFolder("svc-responses");
    const reopen = (hostUrl?: string): FileResponseStore => openStore(folder, separateTrailers, hostUrl);
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

describe("trailers in files of their own", () => {
  const id = repositoryId("org", "name");
  const [key, otherKey] = ["a".repeat(64), "b".repeat(64)];
  let folder: TempFolder;
  let path = "";
  let store: FileResponseStore;
  const start = (): FileResponseStore => openStore(folder, true);
  const put = async (name: string): Promise<void> => {
    const sums = new GrowingSums();
    sums.push(CONTENT);
    const pending = await store.create(id, name);
    await pending.write([CONTENT], 0);
    await pending.commit(sums.finish());
    await pending.close();
  };
  const trailers = async (): Promise<string[]> =>
    (await readdir(path)).filter((name) => name.endsWith(".sums")).map((name) => name.slice(0, 1));
  beforeEach(async () => {
    folder = await tempFolder("svc-trailers");
    path = new ResponseFolders(folder.path, HOST_URL).path(id);
    store = start();
    await put(key);
    await put(otherKey);
    assert.deepEqual((await trailers()).toSorted(), ["a", "b"]);
  });
  afterEach(async () => folder.remove());

  it("are removed with their response", async () => {
    assert.ok(await store.remove(id, key));
    assert.deepEqual(await trailers(), ["b"]);
  });

  it("are removed with a damaged response, and kept until then", async () => {
    await rename(join(path, key), join(path, `${key}.corrupt~`));
    await store.list(id);
    assert.equal((await trailers()).length, 2);
    assert.ok(await store.remove(id, `${key}.corrupt~`));
    assert.deepEqual(await trailers(), ["b"]);
  });

  it("of responses that are gone are removed at a start, and by the next listing", async () => {
    await unlink(join(path, key));
    assert.equal(await start().removeLeftovers(), 1);
    assert.deepEqual(await trailers(), ["b"]);
    await unlink(join(path, otherKey));
    await store.list(id);
    assert.deepEqual(await trailers(), []);
  });

  it("of a response that a running process has not named yet stay at a start", async () => {
    await rename(join(path, key), join(path, `.${key}.${process.ppid}.0123456789ab${TEMPORARY_SUFFIX}`));
    assert.equal(await start().removeLeftovers(), 0);
    assert.deepEqual((await trailers()).toSorted(), ["a", "b"]);
  });

  it("that are missing make a response unusable", async () => {
    const name = (await readdir(path)).find((each) => each.startsWith(key) && each.endsWith(".sums"));
    await unlink(join(path, name ?? ""));
    assert.equal(await start().open(id, key), "failed");
    assert.ok((await readdir(path)).includes(`${key}.corrupt~`));
  });
});
