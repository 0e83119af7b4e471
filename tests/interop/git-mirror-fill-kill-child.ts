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
    // What an earlier process left whole is no news.
    if (opened) process.stdout.write(`${oid}\n`);
  }
  // Whole now: from the beginning. Removed as the service does it, in one step.
  const gone = `${path}.${process.pid}.${performance.now()}`;
  await rename(path, gone);
  await rm(gone, { recursive: true });
  process.stdout.write("again\n");
}
