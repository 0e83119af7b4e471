/** Fills a store pack by pack, round after round, until it is killed: `PATH HOST NAME=PACK…`, oldest first. */
import { createReadStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { IndexWorkers } from "@devplat/git-store";
import { ProofThread, RepositoryStore } from "@devplat/git-mirror";

const [path = "", hostUrl = "", ...packs] = process.argv.slice(2);
const store = new RepositoryStore({
  path,
  hostUrl,
  hostKey: "svc.hosturl",
  workers: new IndexWorkers(),
  proofs: new ProofThread(),
  discard: () => rm(path, { recursive: true }),
});
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
