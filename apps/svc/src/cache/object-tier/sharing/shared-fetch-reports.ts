import type { Logger } from "@devplat/base";
import type { RepositoryId } from "../../../access/repository-id.ts";
import type { AloneReason } from "../../../coordination/shared-fetches.ts";

/** How a request that needed data of the code host got it. */
export type SharedFetchResult =
  | "led"
  | "shared"
  /** From another instance after `too_long`, before the code host responded to this one. */
  | "late"
  | AloneReason;

/** Results after which other instances may have fetched the same. */
const REPEATED: ReadonlySet<SharedFetchResult> = new Set<SharedFetchResult>([
  "failed",
  "private",
  "too_long",
]);

/** A request that may use the fetch of another instance. */
export interface SharedFetchTurnReport {
  readonly result: SharedFetchResult;
  /** Number of the fetch. The instance that made it and those that waited for it log the same. */
  readonly fence: number | undefined;
  /** Milliseconds since the request began to wait. */
  readonly waitedMs: number;
}

/** End of a fetch for which other instances waited. */
export interface LedFetchReport {
  readonly fence: number;
  /** `shared`: they can read it from the bucket. */
  readonly state: "shared" | "private" | "failed";
  /** Bytes that the code host sent. */
  readonly bytes: number;
  /** Milliseconds from its beginning to its end in the bucket. */
  readonly ms: number;
}

/**
 * Metric and log lines of fetches that instances share. A fetch that no other instance waits for has no line. Each instance that
 * waited has one, so that the lines with one `fence` say how many they are.
 */
export class SharedFetchReports {
  readonly #metrics: { turn(result: SharedFetchResult): void };
  readonly #logger: Logger;

  constructor(metrics: { turn(result: SharedFetchResult): void }, logger: Logger) {
    this.#metrics = metrics;
    this.#logger = logger;
  }

  turn({ key: repo }: RepositoryId, { result, fence, waitedMs }: SharedFetchTurnReport): void {
    this.#metrics.turn(result);
    const fields = { repo, waited_ms: Math.round(waitedMs) };
    if (result === "shared" || result === "late") {
      this.#logger.info({ ...fields, fence }, "another instance has made a fetch from the code host");
    } else if (REPEATED.has(result)) {
      this.#logger.info(
        { ...fields, reason: result },
        "a fetch from the code host is repeated: another instance did not share it in time",
      );
    }
  }

  led({ key: repo }: RepositoryId, { fence, state, bytes, ms }: LedFetchReport): void {
    const fields = { repo, fence, state, bytes, duration_ms: Math.round(ms) };
    this.#logger.info(fields, "made a fetch from the code host for other instances, too");
  }
}
