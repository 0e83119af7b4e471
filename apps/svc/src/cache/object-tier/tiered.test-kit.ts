import { open, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ifExists, silentLogger, systemClock } from "@devplat/base";
import type { ObjectStore } from "@devplat/object-store";
import { repositoryId, type RepositoryId } from "../../access/repository-id.ts";
import { RepositoryEpochs } from "../../coordination/repository-epochs.ts";
import type { Store } from "../../storage/store.ts";
import { BackgroundWork } from "../background-work.ts";
import { FaultLog } from "../fault-log.ts";
import type { CachePolicies, CachePolicy } from "../policy.ts";
import { GrowingSums } from "../responses/block-sums.ts";
import { FileResponseStore } from "../responses/file-response-store.ts";
import { ResponseFolders } from "../responses/response-folders.ts";
import type { ResponseStore, StoredResponse } from "../responses/response-store.ts";
import { Slices } from "../responses/slices.ts";
import { HOST_URL, openManifests } from "./manifest/manifest.test-kit.ts";
import type { Manifest } from "./manifest/manifest.ts";
import { BucketResponses } from "./responses/bucket-responses.ts";
import { RESPONSE_JOB, ResponseUpload } from "./responses/response-upload.ts";
import { ResponseUses } from "./responses/response-uses.ts";
import { CheckedObjects } from "./slices/checked-objects.ts";
import { TieredResponseStore } from "./tiered-response-store.ts";
import { BucketReset, RESET_JOB } from "./uploads/bucket-reset.ts";
import { UploadJournal } from "./uploads/upload-journal.ts";
import { UploadQueue } from "./uploads/upload-queue.ts";

const MEGABYTE = 2 ** 20;

export interface TestTierOptions {
  /** Folder of the local tier. */
  readonly path: string;
  readonly store: ObjectStore;
  readonly hostUrl?: string;
  readonly database: Store;
  readonly separateTrailers?: boolean;
  readonly firstByteMs?: number;
  readonly writer?: string;
  readonly maxCacheSizeMb?: number;
}

/** The responses of one instance: its local tier, and its view of the bucket. */
export interface TestTier {
  readonly responses: TieredResponseStore;
  readonly local: FileResponseStore;
  readonly queue: UploadQueue;
  readonly bucket: BucketResponses;
  readonly uses: ResponseUses;
  readonly faults: FaultLog;
  /** Keys that more than one request has used. */
  readonly reused: Set<string>;
  readonly database: Store;
  /** As the administration does it. */
  purge(id: RepositoryId): Promise<void>;
  /** Reads the manifest. */
  manifest(id: RepositoryId): Promise<Manifest | undefined>;
  /** Reads the jobs that were left, and starts to upload. */
  start(): Promise<void>;
  /** Ends uploads and downloads, as a stop of the service does. */
  stop(): Promise<void>;
}

export function openTestTier(options: TestTierOptions): TestTier {
  const { path, store, hostUrl = HOST_URL, firstByteMs = 20_000, writer = "w1" } = options;
  const { database } = options;
  const epochs = new RepositoryEpochs({
    store: database.epochs,
    hostUrl,
    data: {
      storagePath: path,
      purge: async (owner, name) => responses.removeAll(repositoryId(owner, name)),
    },
    logger: silentLogger,
  });
  const { manifests, names } = openManifests(store, { hostUrl, writer, epochs });
  const stopping = new AbortController();
  const faults = new FaultLog(silentLogger);
  const work = new BackgroundWork(silentLogger);
  const reused = new Set<string>();
  const clock = systemClock;
  const local = new FileResponseStore({
    folders: new ResponseFolders(path, hostUrl),
    hostUrl,
    slices: new Slices(),
    separateTrailers: options.separateTrailers === true,
    packs: { openPack: async (_id, name) => ifExists(open(join(path, `${name}.pack`), "r")) },
    stopping: stopping.signal,
    faults,
    packSuspected: () => undefined,
    clock,
  });
  const policy = { maxCacheSizeMb: options.maxCacheSizeMb } as CachePolicy;
  const policies: CachePolicies = { find: () => policy, all: () => [policy] };
  const bucket = new BucketResponses({ manifests, epochs, policies, now: () => store.now() });
  const queue = new UploadQueue(
    { journal: new UploadJournal(path), epochs, faults, clock },
    { maxBytes: 1000 * MEGABYTE, parallel: 2 },
  );
  const reset = new BucketReset({ manifests, epochs, queue, clock });
  queue.register(RESPONSE_JOB, new ResponseUpload({ local, bucket, store, names, writer }));
  queue.register(RESET_JOB, reset);
  const uses = new ResponseUses(bucket, faults, clock);
  const responses: TieredResponseStore = new TieredResponseStore({
    local,
    bucket,
    objects: new CheckedObjects(store, names),
    queue,
    reset,
    uses,
    epochs,
    isReused: (_id, key) => reused.has(key),
    faults,
    work,
    clock,
    firstByteMs,
    stopping: stopping.signal,
  });
  let running: Promise<void> | undefined;
  return {
    responses,
    local,
    queue,
    bucket,
    uses,
    faults,
    reused,
    database,
    async purge({ owner, name }) {
      await epochs.raise(owner, name);
      await epochs.settled();
    },
    manifest: async (id) => manifests.current(id),
    async start() {
      await queue.restore();
      await epochs.compare();
      running = queue.run(stopping.signal);
    },
    async stop() {
      stopping.abort(new Error("stopping"));
      await running;
      await responses.settled();
      await work.settled();
      await queue.settled();
      await epochs.settled();
    },
  };
}

/** Stores a response. */
export async function putResponse(
  store: ResponseStore,
  id: RepositoryId,
  key: string,
  content: Buffer,
): Promise<void> {
  const sums = new GrowingSums();
  sums.push(content);
  const pending = await store.create(id, key);
  await pending.write([content], 0);
  await pending.commit(sums.finish());
  await pending.close();
}

/** Reads a response to its end, and closes it. @throws what a slice rejects with */
export async function readResponse(response: StoredResponse): Promise<Buffer> {
  const parts: Buffer[] = [];
  try {
    for (let at = 0; at < response.size;) {
      const slice = await response.slice(at);
      parts.push(Buffer.from(slice.bytes));
      at += slice.bytes.length;
      slice.release();
    }
  } finally {
    await response.close();
  }
  return Buffer.concat(parts);
}

/** Packs of the mirrors of {@link openTestTier}. */
export const testPacks = {
  put: async (path: string, name: string, bytes: Buffer): Promise<void> =>
    writeFile(join(path, `${name}.pack`), bytes),
  remove: async (path: string, name: string): Promise<void> => unlink(join(path, `${name}.pack`)),
};
