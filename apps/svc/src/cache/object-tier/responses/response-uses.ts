import { BoundedMap } from "@devplat/base/bounded-map";
import type { Clock } from "@devplat/base";
import type { RepositoryId } from "../../../access/repository-id.ts";
import type { FaultLog } from "../../fault-log.ts";
import type { BucketResponses } from "./bucket-responses.ts";
import { USE_INTERVAL_MS } from "./listed-responses.ts";

/** Responses whose last use is remembered. */
const MAX_USES = 16_384;

interface Use {
  readonly id: RepositoryId;
  readonly key: string;
  at: number;
}

/** Last uses of responses, which are written into the manifests together: one update for each repository now and then. */
export class ResponseUses {
  readonly #bucket: Pick<BucketResponses, "recordUses" | "now">;
  readonly #faults: Pick<FaultLog, "once">;
  readonly #clock: Pick<Clock, "sleep">;
  #uses = new BoundedMap<string, Use>({ max: MAX_USES });

  constructor(
    bucket: Pick<BucketResponses, "recordUses" | "now">,
    faults: Pick<FaultLog, "once">,
    clock: Pick<Clock, "sleep">,
  ) {
    this.#bucket = bucket;
    this.#faults = faults;
    this.#clock = clock;
  }

  /** @param name of the response among those of all repositories */
  note(name: string, id: RepositoryId, key: string): void {
    const at = Math.trunc(this.#bucket.now());
    const known = this.#uses.get(name);
    if (known === undefined) this.#uses.set(name, { id, key, at });
    else known.at = at;
  }

  /** Writes uses from time to time. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.sleep(USE_INTERVAL_MS, signal).catch(() => undefined);
      if (!signal.aborted) await this.flush();
    }
  }

  /** Never rejects: uses that cannot be written are lost. */
  async flush(): Promise<void> {
    const uses = [...this.#uses.values()];
    this.#uses.clear();
    const repositories = Map.groupBy(uses, ({ id }) => id.key);
    for (const [first, ...more] of repositories.values()) {
      if (first === undefined) continue;
      const times = new Map([first, ...more].map(({ key, at }) => [key, at]));
      try {
        await this.#bucket.recordUses(first.id, times);
      } catch (error) {
        this.#faults.once(
          { id: first.id },
          error,
          "the last uses of responses cannot be recorded in the bucket",
        );
      }
    }
  }
}
