import { TimeLimit, messageOf, untilAborted, type Clock, type Logger } from "@devplat/base";
import {
  ObjectStoreError,
  probeStore,
  type ObjectStore,
  type ProbeRow,
  type StoreAbilities,
} from "@devplat/object-store";

/** Milliseconds between two probes of a bucket that cannot be used. Somebody may repair its settings at any time. */
const RETRY_MS = 60_000;
/** Milliseconds that a probe may take: 30 requests, each within its own limit. */
const PROBE_LIMIT_MS = 120_000;

/**
 * - `probing`: the first probe runs. Nothing is read or written yet.
 * - `usable`: the bucket is used.
 * - `unusable`: it is not used, for this reason. It is probed again.
 */
export type BucketState =
  | { readonly kind: "probing" }
  | { readonly kind: "usable"; readonly abilities: StoreAbilities }
  | { readonly kind: "unusable"; readonly reason: string };

export interface ProbedStoreParts {
  /** The store itself, for probes. */
  readonly store: ObjectStore;
  /** The store behind its circuit breaker, for everything else. */
  readonly guarded: ObjectStore;
  /** Folder for the objects of the probe. */
  readonly prefix: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called with each state after a probe. */
  readonly onState: (state: BucketState) => void;
}

/**
 * A bucket that is used only after a probe has shown that it does what the object tier relies on. Before that, every call
 * rejects with `circuit_open`, and nothing is sent.
 */
export class ProbedStore implements ObjectStore {
  readonly #parts: ProbedStoreParts;
  #state: BucketState = { kind: "probing" };
  #running: Promise<BucketState> | undefined;

  readonly get: ObjectStore["get"];
  readonly head: ObjectStore["head"];
  readonly put: ObjectStore["put"];
  readonly putLarge: ObjectStore["putLarge"];
  readonly delete: ObjectStore["delete"];
  readonly list: ObjectStore["list"];
  readonly listUploads: ObjectStore["listUploads"];
  readonly abortUpload: ObjectStore["abortUpload"];

  constructor(parts: ProbedStoreParts) {
    this.#parts = parts;
    this.get = async (...args) => this.#usable().get(...args);
    this.head = async (...args) => this.#usable().head(...args);
    this.put = async (...args) => this.#usable().put(...args);
    this.putLarge = async (...args) => this.#usable().putLarge(...args);
    this.delete = async (...args) => this.#usable().delete(...args);
    this.list = async (...args) => this.#usable().list(...args);
    this.listUploads = async (...args) => this.#usable().listUploads(...args);
    this.abortUpload = async (...args) => this.#usable().abortUpload(...args);
  }

  get state(): BucketState {
    return this.#state;
  }

  now(): number {
    return this.#parts.guarded.now();
  }

  async close(): Promise<void> {
    await this.#parts.guarded.close();
  }

  /** Probes the bucket once. Callers that come while a probe runs share it. @throws the reason of the signal */
  async probe(signal?: AbortSignal): Promise<BucketState> {
    this.#running ??= this.#probe(signal).finally(() => (this.#running = undefined));
    return await untilAborted(this.#running, signal);
  }

  /** Probes the bucket until it can be used. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      while (this.#state.kind !== "usable" && (await this.probe(signal)).kind !== "usable")
        await this.#parts.clock.sleep(RETRY_MS, signal);
    } catch (error) {
      if (!signal.aborted) this.#parts.logger.error({ err: error }, "the bucket could not be probed");
    }
  }

  async #probe(signal: AbortSignal | undefined): Promise<BucketState> {
    const { store, prefix, clock, onState } = this.#parts;
    using limit = new TimeLimit(clock, PROBE_LIMIT_MS, ...(signal === undefined ? [] : [signal]));
    let state: BucketState;
    try {
      state = stateOf(await probeStore(store, { prefix, signal: limit.signal }));
    } catch (error) {
      signal?.throwIfAborted();
      state = { kind: "unusable", reason: messageOf(error) };
    }
    this.#log(state);
    this.#state = state;
    onState(state);
    return state;
  }

  #log(state: BucketState): void {
    const { logger } = this.#parts;
    const before = this.#state;
    if (state.kind === "usable") logger.info({}, "the bucket is used");
    else if (state.kind === "unusable" && (before.kind !== "unusable" || before.reason !== state.reason))
      logger.error({ reason: state.reason }, "the bucket is not used: only the local cache is");
  }

  #usable(): ObjectStore {
    if (this.#state.kind === "usable") return this.#parts.guarded;
    const reason = this.#state.kind === "unusable" ? this.#state.reason : "it is being probed";
    throw new ObjectStoreError("circuit_open", `Cannot use the bucket: ${reason}`);
  }
}

/** Decision about a bucket from its abilities. */
export function stateOf(abilities: StoreAbilities): BucketState {
  const { rows, usable, conditions, missingPermissions } = abilities;
  if (usable && conditions) return { kind: "usable", abilities };
  if (missingPermissions.length > 0) {
    const reason = `the credentials lack the permissions ${missingPermissions.join(", ")}`;
    return { kind: "unusable", reason };
  }
  const failed = rows.find(({ result }) => result === "failed");
  if (failed !== undefined) return { kind: "unusable", reason: failed.reason ?? failed.ability };
  const lacking = rows.filter(({ result }) => result === "no").map(({ ability }: ProbeRow) => ability);
  return {
    kind: "unusable",
    reason:
      `the store does not honour conditions (${lacking.join(", ")}). ` +
      "Such a bucket can be used only with a common Postgres, and this version does not do that yet",
  };
}
