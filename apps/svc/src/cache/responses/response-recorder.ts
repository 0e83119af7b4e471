import type { ResponseChunks } from "@devplat/git-mirror";
import type { Metrics } from "../../telemetry/metrics.ts";
import { isStorable } from "../../access/repository-id.ts";
import type { CachedRepository } from "../cached-repository.ts";
import type { FetchOutcome } from "../coalescing/coalesced-fetch.ts";
import type { LedFetch } from "../coalescing/coalesced-fetches.ts";
import type { FaultLog } from "../fault-log.ts";
import { enabledPolicy, responseLimit, type CachePolicies } from "../policy.ts";
import type { PendingResponse, ResponseStore } from "./response-store.ts";

/** Key of a response that is only read while it is written. */
const UNNAMED = "unnamed";
const NOT_STORED = "a response cannot be stored; it is passed through";

/** One response that is recorded. */
export interface Recording {
  readonly repository: CachedRepository;
  /** Undefined: the response must not be stored. */
  readonly key: string | undefined;
  /** Generation of the repository at the request. If it was raised since, the response must not be stored. */
  readonly generation: number;
  /** Objects that the names of `want-ref` must have in the response. */
  readonly wantedRefs: ReadonlyMap<string, string>;
  readonly led: LedFetch;
  readonly chunks: ResponseChunks;
  /** Undefined: the response cannot be written. */
  readonly pending: PendingResponse | undefined;
  /** Whether the mirror can make the response again. Then it is stored at its second use. */
  readonly isRepeatable: boolean;
}

export interface Recorded extends FetchOutcome {
  /** Whether `pending` has the response, until it is closed. */
  readonly isReadable: boolean;
  /** Whether requests find it. */
  readonly stored: boolean;
}

/** Writes responses to the store while they go to clients. A failure of the store never fails a response. */
export class ResponseRecorder {
  readonly #parts: {
    readonly responses: ResponseStore;
    readonly faults: FaultLog;
    readonly policies: CachePolicies;
    readonly metrics: Metrics;
  };

  constructor(parts: {
    readonly responses: ResponseStore;
    readonly faults: FaultLog;
    readonly policies: CachePolicies;
    readonly metrics: Metrics;
  }) {
    this.#parts = parts;
  }

  /**
   * Starts the pending response that a fetch is written to and that its readers read, even if it is never stored. Without
   * it the slowest reader would set the pace of the transfer, and its turn would last longer.
   */
  async begin(repository: CachedRepository, key: string | undefined): Promise<PendingResponse | undefined> {
    if (!isStorable(repository.id)) return undefined;
    try {
      return await this.#parts.responses.create(repository.id, key ?? UNNAMED);
    } catch (error) {
      this.#parts.faults.once(repository, error, NOT_STORED);
      return undefined;
    }
  }

  /**
   * Drains a response to its readers and to the store, which keeps it if it is whole and was used before, or cannot be made
   * again. One that is larger than the limit of its repository is not kept: the next cleanup would remove it. The caller
   * closes `pending`.
   */
  async record(recording: Recording): Promise<Recorded> {
    const { repository, key, generation, wantedRefs, led, chunks, pending, isRepeatable } = recording;
    const outcome = await led.fetch.run(chunks, pending);
    if (pending === undefined) return { ...outcome, isReadable: false, stored: false };
    if (outcome.diskError !== undefined) {
      this.#parts.faults.once(repository, outcome.diskError, NOT_STORED);
    }
    const isSame = generation === repository.generation && areSameRefs(wantedRefs, led.check.wantedRefs);
    const isKept = key !== undefined && (!isRepeatable || repository.isReused(key));
    // The repository may have been removed from the list or disabled during the fetch.
    const policy = enabledPolicy(this.#parts.policies, repository.id);
    const isReadable = isKept && outcome.storable && isSame && policy !== undefined;
    const stored = isReadable && outcome.bytes <= responseLimit(policy);
    if (stored) await this.#commit(repository, pending, led);
    await pending.discard();
    return { ...outcome, isReadable, stored };
  }

  async #commit(repository: CachedRepository, pending: PendingResponse, led: LedFetch): Promise<void> {
    const { responses, faults, policies, metrics } = this.#parts;
    const { id } = repository;
    try {
      await pending.commit(led.fetch.sums);
      faults.forget(repository);
      const { owner, name } = policies.find(id.owner, id.name) ?? id;
      metrics.responseSize(owner, name, responses.figures(id).bytes);
    } catch (error) {
      faults.once(repository, error, "a response cannot be stored");
    }
  }
}

/** Whether the names of `want-ref` have the same objects. */
function areSameRefs(expected: ReadonlyMap<string, string>, given: ReadonlyMap<string, string>): boolean {
  if (expected.size !== given.size) return false;
  return expected.entries().every(([name, oid]) => given.get(name) === oid);
}
