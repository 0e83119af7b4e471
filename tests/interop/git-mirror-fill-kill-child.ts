/** Fills a store pack by pack, round after round, until it is killed: `ROOT NAME=PACK…`, oldest first. */
import { createReadStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { createMirrorThreads } from "@devplat/git-mirror";
import { FOLDER, openMirror } from "./git-mirror-open.ts";

const [root = "", ...packs] = process.argv.slice(2);
const path = join(root, FOLDER);
const threads = createMirrorThreads();
threads.urgency.always();
const store = openMirror({ root, threads });
for (;;) {
  for (const pack of packs) {
    const [oid = "", file = ""] = pack.split("=");
    let opened = false;
    await store.receive({
      open: () => {
        opened = true;
        return Promise.resolve(createReadStream(file));
      },
      format: "sha1",
      wants: [oid],
      shown: [{ name: "refs/heads/main", oid }],
    });
    // Data that an earlier process completed is not reported again.
    if (opened) process.stdout.write(`${oid}\n`);
  }
  // The history is complete: start again. The store is removed in one step, as the service does.
  const gone = `${path}.${process.pid}.${performance.now()}`;
  await rename(path, gone);
  await rm(gone, { recursive: true });
  process.stdout.write("again\n");
}
