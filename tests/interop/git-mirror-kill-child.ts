/**
 * Fills a store, merges its packs and drops what is unreachable, round after round, until it is killed:
 * `ROOT STEPS` with a JSON list of `[ref, oid, pack]`.
 */
import { createReadStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { createMirrorThreads } from "@devplat/git-mirror";
import { FOLDER, openMirror } from "./git-mirror-open.ts";

const [root = "", steps = "[]"] = process.argv.slice(2);
const path = join(root, FOLDER);
const threads = createMirrorThreads();
threads.urgency.always();
const store = openMirror({ root, threads });
for (let round = 0; ; round++) {
  for (const [name, oid, pack] of JSON.parse(steps) as [string, string, string][]) {
    await store.receive({
      open: () => Promise.resolve(createReadStream(pack)),
      format: "sha1",
      wants: [oid],
      shown: [{ name, oid }],
    });
    process.stdout.write(`${name} ${oid}\n`);
    // Alternates between a geometric repack and a prune that drops unreachable objects immediately.
    await store.repack({ pruneAfterMs: round % 2 === 0 ? Infinity : 0, minPacks: 2 });
  }
  // The history is complete: start again. The store is removed in one step, as the service does.
  const gone = `${path}.${process.pid}.${performance.now()}`;
  await rename(path, gone);
  process.stdout.write("again\n");
  await rm(gone, { recursive: true });
}
