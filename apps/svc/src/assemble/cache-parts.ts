import type { Clock, Logger } from "@devplat/base";
import {
  FileMirrorStorage,
  IdleDetector,
  createMirrorSet,
  createMirrorThreads,
  type Mirror,
  type MirrorSet,
} from "@devplat/git-mirror";
import { RefSnapshotStore } from "../access/ref-snapshot-store.ts";
import { isStorable, type RepositoryId } from "../access/repository-id.ts";
import { BRAND } from "../brand.ts";
import { AdmissionQueue, type QueueRules } from "../cache/admission/admission-queue.ts";
import { MAX_FETCHES_PER_REPOSITORY, MAX_HEAVY_RESPONSES } from "../cache/admission/places.ts";
import { ToldWaiters } from "../cache/admission/told-waiters.ts";
import { BackgroundWork } from "../cache/background-work.ts";
import { CacheService } from "../cache/cache-service.ts";
import { Cleanup } from "../cache/cleanup.ts";
import { MissingObjectFetches } from "../cache/coalescing/missing-object-fetch.ts";
import { CoalescedFetches } from "../cache/coalescing/coalesced-fetches.ts";
import { LeadFetch } from "../cache/coalescing/lead-fetch.ts";
import { ObjectEnsurer } from "../cache/ensuring/object-ensurer.ts";
import { FaultLog } from "../cache/fault-log.ts";
import { BackgroundFills } from "../cache/filling/background-fill.ts";
import { FillWatch } from "../cache/filling/fill-watch.ts";
import { StoredFills } from "../cache/filling/stored-fills.ts";
import { MirrorFiller } from "../cache/filling/mirror-filler.ts";
import { GitCache } from "../cache/git-cache.ts";
import { MirrorFaults } from "../cache/mirror-faults.ts";
import { MirrorResponses } from "../cache/mirror-responses.ts";
import type { ObjectTier } from "../cache/object-tier/object-tier.ts";
import type { CachePolicies } from "../cache/policy.ts";
import type { Seeds } from "../cache/seeds/seeds.ts";
import { RepositoryRegistry } from "../cache/repository-registry.ts";
import { RepositoryReset } from "../cache/repository-reset.ts";
import { FileResponseStore } from "../cache/responses/file-response-store.ts";
import {
  HANDED_FOLDER,
  RESPONSES_FOLDER,
  ResponseFolders,
  UPLOADS_FOLDER,
} from "../cache/responses/response-folders.ts";
import { ResponseRecorder } from "../cache/responses/response-recorder.ts";
import { Slices } from "../cache/responses/slices.ts";
import { Warmer, type WarmerOptions } from "../cache/warming/warmer.ts";
import type { Metrics } from "../telemetry/metrics.ts";

/** Parts of the cache that the object tier uses. */
export interface ObjectTierInputs {
  readonly local: FileResponseStore;
  readonly mirrors: { of(id: RepositoryId): Mirror };
  /** `cache.prune_unreachable_after` */
  readonly pruneAfterMs: number;
  readonly repositories: RepositoryRegistry;
  readonly policies: CachePolicies;
  readonly faults: FaultLog;
  readonly work: BackgroundWork;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Fires when the service stops. */
  readonly stopping: AbortSignal;
}

/** Configuration of the cache. Times are in milliseconds; Infinity: without a limit. */
export interface CacheSettings {
  /** `cache.storage_path` */
  readonly storagePath: string;
  /** `host.url`: data from another code host is never served. */
  readonly hostUrl: string;
  /** Builds the bucket behind the local cache. Undefined: none is configured. */
  readonly objectTier?: ((inputs: ObjectTierInputs) => ObjectTier) | undefined;
  /** Whether new response files are the response and nothing else (`server.accel`). Default false. */
  readonly handsOver?: boolean;
  readonly policies: CachePolicies;
  /** `cache.tips_seconds` */
  readonly tipsSeconds: number;
  /** `cache.max_upstream_fetches` */
  readonly maxUpstreamFetches: number;
  /** `cache.queue_seconds`, `cache.queue_silent_seconds` */
  readonly queueRules: () => QueueRules;
  /** `cache.heavy_mb`, in bytes. */
  readonly heavyBytes: () => number;
  /** Heavy responses that are made at the same time. Default {@link MAX_HEAVY_RESPONSES}. */
  readonly maxHeavyResponses?: number;
  /** Between keepalive packets for a client that waits. */
  readonly keepAliveMs: number;
  /** In which the code host must begin to give what a mirror lacks. */
  readonly firstByteMs: number;
  /** `cache.fill`: what an empty mirror is filled with behind a request. */
  readonly fill: "full" | "wants";
  /** `cache.fill_max_mb` */
  readonly fillMaxBytes: number;
  /** `cache.repack_idle_seconds` */
  readonly repackIdleMs: number;
  /** `cache.prune_unreachable_after` */
  readonly pruneAfterMs: number;
  /** `cache.detect_sha1_collisions` */
  readonly detectCollisions: boolean;
  /** `cache.max_total_size_mb` */
  readonly maxTotalBytes: number;
  /** `cache.drop_unused_after` */
  readonly dropUnusedAfterMs: number;
  /** `cache.strict_lsrefs`: no repository has seeds. */
  readonly strictLsRefs: boolean;
  /** `cache.seed_interval` */
  readonly seedIntervalMs: () => number;
  /** Who fetches ahead; undefined: nobody. */
  readonly warming: WarmerOptions | undefined;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** The parts of the cache that others use. */
export interface CacheParts {
  readonly cache: GitCache;
  /** Brings objects here before they are fetched. */
  readonly ensurer: ObjectEnsurer;
  /** Loads the part that makes and finds seeds with its first use. */
  readonly seeds: () => Promise<Seeds>;
  readonly service: CacheService;
  /** Says which objects are here, for the access check. */
  readonly objects: MirrorResponses;
  readonly refs: RefSnapshotStore;
  /** Clients that were told that they wait. */
  readonly told: ToldWaiters;
}

/** Builds the cache: responses, mirrors, shared fetches, warming, cleanup. */
export function buildCache(settings: CacheSettings): CacheParts {
  const { storagePath, hostUrl, policies, metrics, logger, clock } = settings;
  const faults = new FaultLog(logger);
  const work = new BackgroundWork(logger);
  const stopping = new AbortController();
  const refs = new RefSnapshotStore(settings.tipsSeconds, clock);
  const repositories = new RepositoryRegistry(refs);
  const told = new ToldWaiters();
  const { queueRules: rules, heavyBytes } = settings;
  const { queueMs } = rules();
  const queue = { told, rules, observer: metrics.queues, clock };
  const upstreamQueue = new AdmissionQueue({
    ...queue,
    name: "upstream",
    places: { max: settings.maxUpstreamFetches, maxPerGroup: MAX_FETCHES_PER_REPOSITORY },
  });
  const responseQueue = new AdmissionQueue({
    ...queue,
    name: "responses",
    places: { max: settings.maxHeavyResponses ?? MAX_HEAVY_RESPONSES, maxPerGroup: Infinity },
  });
  metrics.queues.watch([responseQueue, upstreamQueue], () => told.count);
  const fetches = new CoalescedFetches();
  const fills = new FillWatch();

  const slices = new Slices();
  const idle = new IdleDetector({ clock, idleMs: settings.repackIdleMs });
  const threads = createMirrorThreads();
  const storage = new FileMirrorStorage({
    root: storagePath,
    otherFolders: [RESPONSES_FOLDER, HANDED_FOLDER, UPLOADS_FOLDER],
    origin: { key: `${BRAND.command}.hosturl`, url: hostUrl },
    threads,
    detectCollisions: settings.detectCollisions,
    clock,
  });
  const local = new FileResponseStore({
    folders: new ResponseFolders(storagePath, hostUrl),
    packs: { openPack: async (id, name) => storage.repository(id).openPack(name) },
    hostUrl,
    slices,
    faults,
    packSuspected: (id) => mirrorFaults.suspect(repositories.of(id)),
    clock,
    stopping: stopping.signal,
    separateTrailers: settings.handsOver === true,
  });
  let seedsMade: Seeds | undefined;
  const tier = settings.objectTier?.({
    local,
    mirrors: { of: (id) => set.mirrors.of(id) },
    pruneAfterMs: settings.pruneAfterMs,
    repositories,
    policies,
    faults,
    work,
    metrics,
    logger,
    clock,
    stopping: stopping.signal,
  });
  const responses = tier?.responses ?? local;
  const sharing = tier?.sharing;
  const recorder = new ResponseRecorder({ responses, faults, policies, metrics });
  const set: MirrorSet = createMirrorSet({
    storage,
    threads,
    clock,
    idle,
    pruneAfterMs: settings.pruneAfterMs,
    mayRepack: async (id) => tier === undefined || (await tier.mirrors.maintains(id)) === true,
    onChanged: (id, change) => {
      tier?.mirrors.changed(id, change);
      if (change.kind === "filled") seedsMade?.filled(repositories.of(id));
      if (change.kind === "removed") repositories.of(id).seedChanges++;
    },
    onRepackFailure: async (key, error) => mirrorFaults.repackFailed(key, error),
    onDamagedIndex: (path) => {
      const what = "an index of stored packs is damaged; it is moved away and made again";
      faults.once(undefined, new Error(path), what);
    },
  });
  const { mirrors, lookup, responder } = set;
  const mirrorFaults = new MirrorFaults(set.repairs, faults);
  const fill = { mode: settings.fill, maxBytes: settings.fillMaxBytes, waitMs: queueMs };
  const background = new BackgroundFills({
    options: fill,
    mirrors,
    queue: upstreamQueue,
    sharing,
    policies,
    faults,
  });
  const filler = new MirrorFiller({
    mirrors,
    threads,
    background,
    idle,
    faults: mirrorFaults,
    policies,
    sharing,
    stopping: stopping.signal,
  });
  const missingObjects = new MissingObjectFetches(upstreamQueue, sharing, policies);
  const objects = new MirrorResponses({
    mirrors,
    lookup,
    responder,
    threads,
    missingObjects,
    source: tier?.mirrors.source,
    filler,
    repositories,
    faults: mirrorFaults,
    queue: responseQueue,
    heavyBytes,
    firstByteMs: settings.firstByteMs,
    stopping: stopping.signal,
  });
  const reset = new RepositoryReset({ repositories, responses, local, mirrors, filler, faults, logger });
  const warmer =
    settings.warming &&
    new Warmer(settings.warming, {
      target: {
        store: ({ id }) => (isStorable(id) ? mirrors.of(id) : undefined),
        recordRefs: async (id, prefixes, body) => refs.record(id, prefixes, body),
        startAnew: async (repository) => reset.startAnew(repository),
      },
      policies,
      upstreamQueue,
      sharing,
      // If the bucket does not say who warms, each instance does.
      mayWarm: async (id) => tier === undefined || (await tier.mirrors.maintains(id)) !== false,
      faults,
      metrics,
      clock,
      waitMs: queueMs,
      mode: settings.fill,
    });
  if (warmer !== undefined) {
    refs.observe({ refsShown: async (id, _, complete) => warmer.observed(repositories.of(id), complete) });
    fills.observe((repository) => warmer.filled(repository));
  }
  refs.observe(reset);
  const lead = new LeadFetch({
    mirror: objects,
    filler,
    mirrorFaults,
    fetches,
    recorder,
    responses,
    sharing,
    upstreamQueue,
    fills,
    reset,
    background: work,
    metrics,
    clock,
    keepAliveMs: settings.keepAliveMs,
  });
  const loadSeeds = async (): Promise<Seeds> => {
    const { Seeds } = await import("../cache/seeds/seeds.ts");
    const intervalMs = settings.seedIntervalMs;
    const parts = { storage, mirrors, lookup, policies, work, logger, clock, intervalMs };
    return new Seeds({ ...parts, faults: mirrorFaults });
  };
  const { maxTotalBytes, dropUnusedAfterMs } = settings;
  const cleanup = new Cleanup({
    repositories,
    responses: local,
    isWaiting: (id, name) => tier?.isWaiting(id, name) === true,
    storage,
    reset,
    policies,
    metrics,
    faults,
    logger,
    clock,
    seedsAreOff: settings.strictLsRefs,
    maxTotalBytes,
    dropUnusedAfterMs,
  });
  return {
    seeds: async () => (seedsMade ??= await loadSeeds()),
    ensurer: new ObjectEnsurer({
      mirrors,
      responder,
      threads,
      missingObjects,
      source: tier?.mirrors.source,
      filler,
      background,
      policies,
      reset,
      faults: mirrorFaults,
      work,
      clock,
      queueMs,
    }),
    cache: new GitCache({
      repositories,
      responses,
      idle,
      fetches,
      lead,
      storedFills:
        tier === undefined
          ? new StoredFills({ mirrors, responses: local, filler, fills, work, clock })
          : undefined,
      metrics,
      clock,
      told,
      rules,
    }),
    service: new CacheService({
      storagePath,
      repositories,
      responses,
      tier,
      storage,
      handsOver: settings.handsOver === true,
      mirrors: set,
      background,
      reset,
      cleanup,
      warmer,
      work,
      stopping,
      policies,
      faults,
      metrics,
      logger,
      clock,
    }),
    objects,
    refs,
    told,
  };
}
