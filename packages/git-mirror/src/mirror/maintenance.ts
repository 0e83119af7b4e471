import { Serializer } from "@devplat/base/serializer";
import type { IdleDetector } from "./idle-detector.ts";
import type { RepositoryId } from "../storage/repository-id.ts";
import type { Mirror } from "./mirror.ts";

/** Minimum number of packs to merge. An object look-up in this many small packs takes microseconds. */
const MIN_PACKS = 8;

export interface MaintenanceParts {
  readonly idle: IdleDetector;
  /** Milliseconds for which objects of dropped refs are retained. Infinity: for ever. */
  readonly pruneAfterMs: number;
  /** Whether this process repacks the repository. If not, another one that shares its packs does it. */
  readonly mayRepack: (id: RepositoryId) => Promise<boolean>;
  /** Called after a failed repack. */
  readonly onFailure: (key: string, error: unknown) => Promise<void>;
  /** Called when no mirror waits any more. */
  readonly onIdle: () => Promise<void>;
}

/** Repacks mirrors after fills, when they are idle. One mirror at a time. */
export class Maintenance {
  readonly #parts: MaintenanceParts;
  readonly #ended = new AbortController();
  /** Repositories that wait or are being repacked. */
  readonly #running = new Map<string, Promise<void>>();
  readonly #turns = new Serializer();

  constructor(parts: MaintenanceParts) {
    this.#parts = parts;
  }

  /** Repacks the mirror when it is idle. For use after a fill. */
  schedule(id: RepositoryId, mirror: Pick<Mirror, "repack">): void {
    if (this.#running.has(id.key) || this.#ended.signal.aborted) return;
    this.#running.set(id.key, this.#run(id, mirror));
  }

  /** Waits for all scheduled repacks. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }

  /** Starts no repack any more. Mirrors that wait until they are idle are not repacked. */
  stop(): void {
    this.#ended.abort(new Error("the service is stopping"));
  }

  async #run(id: RepositoryId, mirror: Pick<Mirror, "repack">): Promise<void> {
    await this.#repack(id, mirror);
    this.#running.delete(id.key);
    if (this.#running.size === 0) await this.#parts.onIdle();
  }

  async #repack(id: RepositoryId, mirror: Pick<Mirror, "repack">): Promise<void> {
    const { signal } = this.#ended;
    const { idle, pruneAfterMs, mayRepack, onFailure } = this.#parts;
    const { key } = id;
    try {
      await idle.wait(key, signal);
    } catch {
      return;
    }
    await this.#turns.run(async () => {
      if (signal.aborted) return;
      try {
        if (await mayRepack(id)) await mirror.repack({ pruneAfterMs, minPacks: MIN_PACKS });
      } catch (error) {
        if (!signal.aborted) await onFailure(key, error);
      }
    });
  }
}
