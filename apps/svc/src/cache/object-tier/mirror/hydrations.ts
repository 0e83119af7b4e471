import type { Clock } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import type { RepositoryId } from "../../../access/repository-id.ts";
import type { FaultLog } from "../../fault-log.ts";
import type { MirrorSource } from "../../mirror-source.ts";
import type { MirrorSync } from "./mirror-sync.ts";
import { TransferProgress } from "./transfer-progress.ts";

/** Age in milliseconds up to which a manifest is not asked for again by requests. Each miss would ask otherwise. */
const MANIFEST_AGE_MS = 1000;
/** Milliseconds after a failure in which requests do not try again, because each of them would wait. */
const RETRY_AFTER_MS = 30_000;
/** Repositories whose failure is remembered. */
const MAX_REMEMBERED = 1024;
/** Milliseconds between two looks at the progress of a transfer. */
const LOOK_MS = 250;

export interface HydrationsParts {
  readonly sync: Pick<MirrorSync, "pull">;
  /** Whether the bucket may still have purged data. */
  readonly isPurging: (id: RepositoryId) => boolean;
  readonly faults: Pick<FaultLog, "once">;
  readonly clock: Clock;
  /** Fires when the service stops. */
  readonly stopping: AbortSignal;
}

interface Hydration {
  readonly changed: Promise<boolean>;
  readonly progress: TransferProgress;
}

/** Brings mirrors up to date from the bucket for requests. One transfer for each repository, for all requests that wait. */
export class Hydrations implements MirrorSource {
  readonly #parts: HydrationsParts;
  readonly #running = new Map<string, Hydration>();
  readonly #failed: BoundedMap<string, true>;

  constructor(parts: HydrationsParts) {
    this.#parts = parts;
    const now = (): number => parts.clock.monotonic();
    this.#failed = new BoundedMap({ max: MAX_REMEMBERED, ttlMs: RETRY_AFTER_MS, now });
  }

  async refresh(id: RepositoryId, waitMs: number): Promise<boolean> {
    const { stopping, isPurging } = this.#parts;
    if (stopping.aborted || this.#failed.get(id.key) === true || isPurging(id)) return false;
    const hydration = this.#running.get(id.key) ?? this.#begin(id);
    return await this.#wait(hydration, waitMs);
  }

  /** Waits for all transfers. */
  async settled(): Promise<void> {
    await Promise.all([...this.#running.values()].map(async ({ changed }) => changed));
  }

  #begin(id: RepositoryId): Hydration {
    const { sync, faults, clock, stopping } = this.#parts;
    const progress = new TransferProgress(clock);
    const pull = async (): Promise<boolean> => {
      try {
        return (await sync.pull(id, { signal: stopping, maxAgeMs: MANIFEST_AGE_MS, progress })).changed;
      } catch (error) {
        if (stopping.aborted) return false;
        this.#failed.set(id.key, true);
        faults.once({ id }, error, "packs cannot be read from the bucket; the code host is asked");
        return false;
      } finally {
        this.#running.delete(id.key);
      }
    };
    const hydration = { changed: pull(), progress };
    this.#running.set(id.key, hydration);
    return hydration;
  }

  async #wait({ changed, progress }: Hydration, waitMs: number): Promise<boolean> {
    const { clock } = this.#parts;
    const end = clock.monotonic() + waitMs;
    const over = new AbortController();
    try {
      for (;;) {
        const left = end - clock.monotonic();
        if (left <= 0 || !progress.isWorthWaiting) return false;
        const look = clock.sleep(Math.min(left, LOOK_MS), over.signal).then(
          () => undefined,
          () => undefined,
        );
        const result = await Promise.race([changed, look]);
        if (result !== undefined) return result;
      }
    } finally {
      over.abort();
    }
  }
}
