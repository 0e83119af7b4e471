import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "@devplat/base";
import { EMPTY_FETCH } from "@devplat/git-protocol";
import {
  FileMirrorStorage,
  IdleDetector,
  createMirrorSet,
  createMirrorThreads,
  type MirrorSet,
} from "@devplat/git-mirror";
import type { ObjectStore } from "@devplat/object-store";
import { git, run as execute, startVersityGateway } from "@devplat/testkit";
import { repositoryId } from "../../apps/svc/src/access/repository-id.ts";
import { startTestBucket } from "../../apps/svc/src/cache/object-tier/bucket.test-kit.ts";
import { openManifests } from "../../apps/svc/src/cache/object-tier/manifest/manifest.test-kit.ts";
import { MirrorSync } from "../../apps/svc/src/cache/object-tier/mirror/mirror-sync.ts";
import { PackUploads } from "../../apps/svc/src/cache/object-tier/mirror/pack-upload.ts";
import { newPackName } from "../../apps/svc/src/cache/object-tier/object-names.ts";
import { CheckedObjects } from "../../apps/svc/src/cache/object-tier/slices/checked-objects.ts";
import { CheckedUploads } from "../../apps/svc/src/cache/object-tier/slices/checked-uploads.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { benchRepositories, workFolder, type BenchRepository } from "../lib/repositories.ts";
import { exactly, interleave, summarize } from "../lib/statistics.ts";

const ID = repositoryId("bench", "store");
const { signal } = new AbortController();
/** Seconds from nothing to the first chunk of a pack for a mirror of 140 MB (issue 19). */
const HYDRATION_SECONDS = 1.5;
/** Bytes after which the first pack of a response has begun: its header comes before. */
const PACK_BEGUN_BYTES = 4096;

/** An instance whose mirrors are in a folder. */
interface Instance {
  readonly set: MirrorSet;
  readonly sync: MirrorSync;
  close(): Promise<void>;
}

/** Time until an instance with an empty disk responds from a mirror in the bucket, and the time to upload that mirror. */
export async function run(rounds: number): Promise<Report> {
  const work = await workFolder("object-mirror");
  const bucket = await startTestBucket(startVersityGateway);
  // Past the proxy, which shares this process.
  const store = bucket.client({ endpoint: bucket.server.endpoint });
  try {
    const rows: Row[] = [];
    for (const repository of await benchRepositories()) {
      rows.push(...(await measure(repository, store, work, rounds)));
      await rm(work, { recursive: true, force: true });
    }
    return {
      name: "object-mirror",
      title: "Mirrors in a bucket: from an empty disk to the first pack, and the upload",
      method: `versitygw over loopback, on the same cores. Hydration: from the request for the manifest until the first ${PACK_BEGUN_BYTES} bytes of a full clone's response, with all files verified, flushed and opened. Reference: a Node program reads the same objects one after another, hashes and writes them. ${rounds} rounds, in turn.`,
      rows,
    };
  } finally {
    await bucket.stop();
  }
}

async function measure(
  { name, path, large }: BenchRepository,
  store: ObjectStore,
  work: string,
  rounds: number,
): Promise<Row[]> {
  const head = (await git(["-C", path, "rev-parse", "HEAD"])).trim();
  const pack = join(work, "whole.pack");
  await workFolder("object-mirror");
  const made = `printf '%s\\n' ${head} | git -C ${path} pack-objects --revs --stdout -q > ${pack}`;
  const { code, stderr } = await execute("sh", ["-c", made], { timeoutMs: 600_000 });
  if (code !== 0) throw new Error(stderr);
  const main = { name: "refs/heads/main", oid: head };
  const first = openInstance(join(work, "first"), store, `${name}-first`);
  await first.set.mirrors.of(ID).receive({
    open: () => Promise.resolve(createReadStream(pack)),
    format: "sha1",
    wants: [head],
    shown: [main],
    isLocal: true,
  });
  const began = performance.now();
  const cpuBefore = process.cpuUsage();
  await first.sync.push(ID, signal);
  const uploadSeconds = (performance.now() - began) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  const { manifests, names } = openManifests(store);
  const manifest = await manifests.current(ID);
  if (manifest === undefined) throw new Error("nothing was uploaded");
  const objects = manifest.packs.flatMap(({ files }) => Object.values(files));
  const megabytes = objects.reduce((sum, { length }) => sum + length, 0) / 1e6;
  const tips = { refs: new Map([[main.name, main]]), head, oids: new Set([head]) };
  let count = 0;
  const hydrate = async (): Promise<number> => {
    const folder = join(work, `next${count++}`);
    const next = openInstance(folder, store, `${name}-next`);
    const start = performance.now();
    await next.sync.pull(ID, { signal });
    const fetch = { ...EMPTY_FETCH, wants: [head], done: true, ofsDelta: true };
    const servable = await next.set.responder.check({
      id: ID,
      fetch,
      format: "sha1",
      tips: { isTip: (oid) => oid === head, recent: () => tips },
      onLateFailure: () => undefined,
    });
    if (servable.kind !== "servable") throw new Error(`the mirror is ${servable.kind}`);
    let bytes = 0;
    for await (const chunk of next.set.responder.respond(fetch, servable, signal)) {
      bytes += chunk.length;
      if (bytes > PACK_BEGUN_BYTES) break;
    }
    const seconds = (performance.now() - start) / 1000;
    await next.close();
    await rm(folder, { recursive: true });
    return seconds;
  };
  const relay = async (): Promise<number> => {
    const start = performance.now();
    for (const [at, object] of objects.entries()) {
      const found = await store.get(names.object(ID, object.name));
      if (!found.modified) throw new Error("the store sends nothing");
      const file = await open(join(work, `relay${at}`), "w");
      const hash = createHash("sha256");
      for await (const chunk of found.body as AsyncIterable<Buffer>) {
        hash.update(chunk);
        await file.write(chunk);
      }
      await file.sync();
      await file.close();
      if (hash.digest("hex") !== object.sha256) throw new Error("wrong bytes");
    }
    return (performance.now() - start) / 1000;
  };
  await hydrate();
  const walls = await interleave({ hydrate, relay }, rounds);
  await first.close();
  const hydration = { unit: "s", ours: summarize(walls.hydrate) };
  const size = `${megabytes.toFixed(0)} MB`;
  return [
    {
      ...hydration,
      what: `${name} (${size}): from an empty disk to the first pack`,
      reference: exactly(HYDRATION_SECONDS),
      referenceName: "the target",
      ...(large && { target: { atMost: 1 } }),
    },
    {
      ...hydration,
      what: `${name} (${size}): the same`,
      reference: summarize(walls.relay),
      referenceName: "Node: read, hash, write, fsync",
    },
    {
      what: `${name} (${size}): upload of the mirror, wall and CPU`,
      unit: "s",
      ours: exactly(uploadSeconds),
      reference: exactly((user + system) / 1e6),
      referenceName: "its CPU",
    },
  ];
}

function openInstance(root: string, store: ObjectStore, writer: string): Instance {
  const threads = createMirrorThreads();
  threads.urgency.always();
  const storage = new FileMirrorStorage({
    root,
    otherFolders: [],
    origin: { key: "svc.hosturl", url: "https://code.example" },
    threads,
    detectCollisions: false,
    clock: systemClock,
  });
  const set = createMirrorSet({
    storage,
    threads,
    clock: systemClock,
    idle: new IdleDetector({ clock: systemClock, idleMs: 0 }),
    pruneAfterMs: Infinity,
    mayRepack: () => Promise.resolve(false),
    onRepackFailure: () => Promise.resolve(),
    onDamagedIndex: () => undefined,
  });
  const { manifests, names, epochs } = openManifests(store, { writer });
  const sync = new MirrorSync({
    mirrors: set.mirrors,
    manifests,
    source: new CheckedObjects(store, names),
    uploads: new PackUploads({
      target: new CheckedUploads(store, names),
      newName: (pack) => newPackName(pack, writer),
      clock: systemClock,
    }),
    epochs,
    shown: () => [],
    pruneAfterMs: Infinity,
    clock: systemClock,
  });
  return {
    set,
    sync,
    close: async () => {
      set.stop();
      await set.settled();
      await set.close();
    },
  };
}
