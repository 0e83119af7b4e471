import { CircuitBreaker, type ObjectStore } from "@devplat/object-store";
import { tempFolder, until, type CodeHost, type S3Server } from "@devplat/testkit";
import { silentLogger, systemClock } from "@devplat/base";
import { RepositoryEpochs } from "../../apps/svc/src/coordination/repository-epochs.ts";
import { memoryStore } from "../../apps/svc/src/storage/memory.test-kit.ts";
import { repositoryId } from "../../apps/svc/src/access/repository-id.ts";
import { buildObjectTier } from "../../apps/svc/src/assemble/object-tier.ts";
import { startTestBucket, type TestBucket } from "../../apps/svc/src/cache/object-tier/bucket.test-kit.ts";
import {
  SOLE_MAINTAINER,
  type Maintainer,
} from "../../apps/svc/src/cache/object-tier/maintenance/maintainer.ts";
import { openManifests } from "../../apps/svc/src/cache/object-tier/manifest/manifest.test-kit.ts";
import type { Manifest } from "../../apps/svc/src/cache/object-tier/manifest/manifest.ts";
import { startStand, type Stand, type StandOptions } from "./svc-git-stand.ts";

const MEGABYTE = 2 ** 20;
const HOUR_MS = 3_600_000;
/** Milliseconds between two reads of manifests, in place of 30 seconds. */
const FOLLOW_MS = 200;

/** A stand with a bucket behind its cache, and uploads that run. */
export interface ObjectStand extends Stand {
  /** As the administration does it. */
  purge(name: string): Promise<void>;
  /** Waits until all is uploaded. */
  uploaded(): Promise<void>;
  manifest(name: string): Promise<Manifest | undefined>;
  /** Reads the manifests of repositories in use, as each instance does every 30 seconds. */
  follow(): Promise<void>;
  /** Object store as the stand uses it. */
  readonly store: ObjectStore;
}

export interface ObjectStandOptions extends StandOptions {
  readonly bucket: TestBucket;
  /** `cache.object_timeout_seconds`, in milliseconds. */
  readonly timeoutMs?: number;
  readonly writer?: string;
  /** Default: this instance maintains all repositories. */
  readonly maintainer?: Maintainer;
}

/** Starts an instance. Stop those with the code host of another one first. */
export async function startObjectStand(options: ObjectStandOptions): Promise<ObjectStand> {
  const { bucket, timeoutMs = 20_000, writer = "w1", maintainer = SOLE_MAINTAINER, ...rest } = options;
  // The cache of the stand is in a folder that its end removes.
  const folder = await tempFolder("svc-object");
  const store = new CircuitBreaker(bucket.client({ timeoutMs }));
  let read: ((name: string) => Promise<Manifest | undefined>) | undefined;
  let follow: (() => Promise<void>) | undefined;
  let waiting: (() => number) | undefined;
  let raise: ((name: string) => Promise<void>) | undefined;
  let purge = async (_owner: string, _name: string): Promise<void> => Promise.resolve();
  const database = await memoryStore();
  const end = new AbortController();
  const stand = await startStand({
    storagePath: folder.path,
    ...rest,
    objectTier: (inputs) => {
      const hostUrl = rest.codeHost?.url ?? "https://code.example";
      const epochs = new RepositoryEpochs({
        store: database.epochs,
        hostUrl,
        data: { storagePath: folder.path, purge: async (owner, name) => purge(owner, name) },
        logger: silentLogger,
      });
      raise = async (name) => {
        await epochs.raise("org", name);
        await epochs.settled();
      };
      const { manifests, names } = openManifests(store, { writer, hostUrl, epochs });
      const tier = buildObjectTier(
        {
          store,
          names,
          manifests,
          epochs,
          writer,
          localPath: folder.path,
          firstByteMs: timeoutMs,
          uploadParallel: 4,
          queueBytes: 1000 * MEGABYTE,
          // Requests to the bucket are counted, so nothing happens in the background by itself.
          maintainer,
          readIntervalMs: HOUR_MS,
        },
        inputs,
      );
      follow = async () => {
        await systemClock.sleep(FOLLOW_MS / 2);
        await tier.mirrors.readManifests(end.signal, FOLLOW_MS);
      };
      read = async (name) => manifests.current(repositoryId("org", name));
      waiting = () =>
        inputs.policies
          .all()
          .reduce((sum, { owner, name }) => sum + tier.figures(repositoryId(owner, name)).waiting, 0);
      return tier;
    },
  });
  purge = async (owner, name) => stand.cache.purge(owner, name);
  const running = stand.cache.run(end.signal);
  return {
    ...stand,
    store,
    async uploaded() {
      await stand.cache.settled();
      await until(() => waiting?.() === 0);
    },
    purge: async (name) => raise?.(name),
    manifest: async (name) => read?.(name),
    follow: async () => follow?.(),
    async stop() {
      end.abort();
      await running;
      await stand.stop();
      await folder.remove();
    },
  };
}

/** Two instances with databases of their own on one bucket, in front of one code host. */
export interface TwoInstances {
  readonly bucket: TestBucket;
  readonly a: ObjectStand;
  readonly b: ObjectStand;
  readonly codeHost: CodeHost;
  /** Starts one more. The caller must stop it. */
  another(options?: Partial<ObjectStandOptions>): Promise<ObjectStand>;
  stop(): Promise<void>;
}

export async function startTwoInstances(
  startServer: () => Promise<S3Server>,
  codeHost: CodeHost,
  options: Partial<ObjectStandOptions> = {},
): Promise<TwoInstances> {
  const bucket = await startTestBucket(startServer);
  const a = await startObjectStand({ ...options, bucket, codeHost });
  const b = await startObjectStand({ ...options, bucket, codeHost, writer: "w2" });
  return {
    bucket,
    a,
    b,
    codeHost,
    another: async (more = {}) => startObjectStand({ ...options, ...more, bucket, codeHost, writer: "w3" }),
    async stop() {
      await a.stop();
      await b.stop();
      await bucket.stop();
      await codeHost.stop();
    },
  };
}
