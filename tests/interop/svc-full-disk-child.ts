/**
 * Clones through the service while its cache is on a disk that is too small: `DISK`. With `BUCKET`, the name of an S3 server, the
 * data is in a bucket already. Tells in JSON what happened.
 */
import { appendFile, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { systemCode } from "@devplat/base";
import { repositories, startCodeHost } from "@devplat/testkit";
import { S3_SERVERS, startTestBucket } from "../../apps/svc/src/cache/object-tier/bucket.test-kit.ts";
import { contentOf, startStand } from "./svc-git-stand.ts";
import { startObjectStand } from "./svc-object-stand.ts";

/** Results of the clones at one moment. */
export interface FullDisk {
  /** Whether each has all that the code host has. */
  readonly right: readonly boolean[];
  /** Temporary files that are still there. */
  readonly leftovers: readonly string[];
  /** Messages in the log of the first clones, which want the same, in order. */
  readonly log: readonly string[];
  readonly stored: number;
}

const [disk = "", bucketServer] = process.argv.slice(2);
const storagePath = join(disk, "cache");
const ballast = join(disk, "ballast");
const codeHost = await startCodeHost();
const { path } = await codeHost.addRepository("org", "one", {
  build: (dir) => repositories.bigBlobs(dir, { blobs: 3, bytes: 2 ** 20 }),
});
const startServer = S3_SERVERS.find(([name]) => name === bucketServer)?.[1];
const bucket = startServer && (await startTestBucket(startServer));
if (bucket !== undefined) {
  // Another instance has room, and has uploaded response and packs.
  const other = await startObjectStand({ bucket, codeHost, writer: "w2" });
  other.list("org", "one");
  for (const to of ["a", "b", "c"]) await other.git(["clone", "-q", "--mirror", `${other.url}/org/one`, to]);
  await other.uploaded();
  await other.stop();
}
const stand = await (bucket === undefined
  ? startStand({ storagePath, codeHost })
  : startObjectStand({ bucket, storagePath, codeHost }));
stand.list("org", "one");
const content = await contentOf(path);

/** Takes all that is left of the disk but some pages. */
async function fillUp(but: number): Promise<void> {
  try {
    for (;;) await appendFile(ballast, Buffer.alloc(64 * 1024));
  } catch (error) {
    if (systemCode(error) !== "ENOSPC") throw error;
  }
  if (but === 0) return;
  await rm(ballast);
  await appendFile(ballast, Buffer.alloc(Math.max(1, Number(process.env["DISK_BYTES"]) - but)));
}

let clones = 0;
async function moment(): Promise<FullDisk> {
  stand.log.length = 0;
  const right: boolean[] = [];
  let log: string[] = [];
  for (const options of [["--mirror"], ["--mirror"], ["--bare", "--filter=blob:none"]]) {
    const to = `clone-${++clones}`;
    const { code } = await stand.git(["clone", "-q", ...options, `${stand.url}/org/one`, to]);
    // A small answer may find room: what fails after it is logged again.
    if (options.includes("--mirror")) log = stand.log.map(({ message }) => String(message));
    const isWhole = options.includes("--mirror");
    right.push(code === 0 && (!isWhole || (await contentOf(stand.folder(to))) === content));
    await stand.cache.settled();
  }
  const all = await readdir(storagePath, { recursive: true });
  return {
    right,
    leftovers: all.filter((name) => /(?:^|\/)tmp_|aside~$|lock~/.test(name)),
    log,
    stored: all.filter((name) => /[0-9a-f]{64}$/.test(name)).length,
  };
}

// Room for a part of the answer; then for nothing, not even the bytes of a lock; then for all.
await fillUp(2 * 2 ** 20);
const part = await moment();
await rm(ballast);
await fillUp(0);
const nothing = await moment();
await rm(ballast);
const room = await moment();
process.stdout.write(JSON.stringify({ part, nothing, room }));
await stand.stop();
await bucket?.stop();
await codeHost.stop();
process.exit(0);
