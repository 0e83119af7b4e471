import type { Mirror, MirrorChange } from "@devplat/git-mirror";
import type { Clock } from "@devplat/base";
import type { RepositoryId } from "../../../access/repository-id.ts";
import type { CachedRepository } from "../../cached-repository.ts";
import type { FaultLog } from "../../fault-log.ts";
import type { ManifestStore } from "../manifest/manifest-store.ts";
import type { UploadQueue } from "../uploads/upload-queue.ts";
import type { Hydrations } from "./hydrations.ts";
import type { Maintainer } from "../maintenance/maintainer.ts";
import type { MirrorSync } from "./mirror-sync.ts";
import { mirrorJob } from "./mirror-upload.ts";

/** Milliseconds between two reads of the manifests of repositories in use (svc-scale §4). */
const READ_INTERVAL_MS = 30_000;
/** Milliseconds after its last fetch for which a repository is in use. */
const IN_USE_MS = 60 * 60 * 1000;

export interface MirrorTierParts {
  readonly sync: MirrorSync;
  readonly hydrations: Hydrations;
  readonly maintainer: Maintainer;
  readonly manifests: Pick<ManifestStore, "current">;
  readonly mirrors: { of(id: RepositoryId): Pick<Mirror, "sharing"> };
  readonly queue: Pick<UploadQueue, "add">;
  /** Repositories that were used since the start. */
  readonly repositories: { all(): Iterable<CachedRepository> };
  readonly faults: Pick<FaultLog, "once">;
  readonly clock: Clock;
}

export interface MirrorTierOptions {
  /** Milliseconds between two reads of the manifests of repositories in use. Default {@link READ_INTERVAL_MS}. */
  readonly readIntervalMs?: number | undefined;
}

/** Mirrors behind which the bucket has the packs that instances share. */
export class MirrorTier {
  readonly #parts: MirrorTierParts;
  readonly #readIntervalMs: number;

  constructor(parts: MirrorTierParts, { readIntervalMs = READ_INTERVAL_MS }: MirrorTierOptions = {}) {
    this.#parts = parts;
    this.#readIntervalMs = readIntervalMs;
  }

  /** Requests ask it before the code host. */
  get source(): Hydrations {
    return this.#parts.hydrations;
  }

  /** A mirror has changed. Its new packs are uploaded behind requests. */
  changed(id: RepositoryId, change: MirrorChange): void {
    const { sync, queue } = this.#parts;
    if (change.kind === "removed") sync.forget(id);
    if (change.kind === "repacked") sync.state(id).repacked(change.result);
    if (change.kind === "repacked" || change.kind === "filled") queue.add(mirrorJob(id));
  }

  /**
   * Whether this instance maintains a repository for all: it merges its packs, and warms it. Undefined: the lease cannot be
   * asked for, so nobody knows. Never rejects.
   */
  async maintains(id: RepositoryId): Promise<boolean | undefined> {
    const { maintainer, sync, faults } = this.#parts;
    try {
      const fence = await maintainer.mayMaintain(id);
      sync.state(id).fence = fence;
      return fence !== undefined;
    } catch (error) {
      faults.once({ id }, error, "the lease of a repository cannot be taken");
      return undefined;
    }
  }

  /** Reads manifests of repositories in use until the signal fires. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    while (!signal.aborted) {
      await clock.sleep(this.#readIntervalMs, signal).catch(() => undefined);
      if (!signal.aborted) await this.readManifests(signal);
    }
  }

  /**
   * Reads the manifests of repositories in use. Their mirrors get new packs of other instances, and a higher epoch removes
   * local data. No request waits for it. Never rejects.
   *
   * @param intervalMs a manifest that was read within half of it is not read again. Default: that of {@link run}
   */
  async readManifests(signal: AbortSignal, intervalMs = this.#readIntervalMs): Promise<void> {
    const { repositories, clock, faults } = this.#parts;
    const since = clock.now() - IN_USE_MS;
    for (const { id, lastFetchAt } of repositories.all()) {
      if (lastFetchAt === undefined || lastFetchAt < since || signal.aborted) continue;
      try {
        await this.#readManifest(id, signal, intervalMs);
      } catch (error) {
        if (!signal.aborted) faults.once({ id }, error, "the manifest of a repository cannot be followed");
      }
    }
  }

  /** Waits for transfers for requests. */
  async settled(): Promise<void> {
    await this.#parts.hydrations.settled();
  }

  async #readManifest(id: RepositoryId, signal: AbortSignal, intervalMs: number): Promise<void> {
    const { manifests, sync, mirrors, queue } = this.#parts;
    await manifests.current(id, { maxAgeMs: intervalMs / 2, signal });
    // An empty mirror is brought up to date when a request needs it.
    const contents = await mirrors.of(id).sharing.contents();
    if (contents === undefined) return;
    const { manifest } = await sync.pull(id, { maxAgeMs: intervalMs, signal });
    const named = new Set(manifest?.packs.map(({ pack }) => pack));
    // The job for its packs was lost, or the bucket is new.
    if (contents.packs.difference(named).size > 0) queue.add(mirrorJob(id));
  }
}
