import { TimeLimit, messageOf, untilAborted, type Clock, type Logger } from "@devplat/base";
import {
  ForwardingStore,
  ObjectStoreError,
  probeStore,
  type ObjectStore,
  type ProbeRow,
  type PutOptions,
  type StoreAbilities,
} from "@devplat/object-store";
import { bucketFault, rowReason, type BucketSettings } from "./bucket-remedies.ts";
import type { PointersInUse } from "../manifest/pointers-in-use.ts";

/** Milliseconds between two probes of a bucket that cannot be used. Somebody may repair its settings at any time. */
const RETRY_MS = 60_000;
/**
 * Milliseconds between two probes of a bucket that is used with conditions: somebody may replace the store, or put a proxy in
 * front of it. Each one sends about 30 requests.
 */
const CHECK_AGAIN_MS = 600_000;
/** Milliseconds for which requests wait for the first probe, all in all. As a rule it takes a quarter of a second. */
const FIRST_PROBE_MS = 2000;
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
  /** Rows of a database that the instances share. They can stand in for conditions. Undefined: they share none. */
  readonly pointers: Pick<PointersInUse, "isSet" | "set"> | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called with each state after a probe. */
  readonly onState: (state: BucketState) => void;
  /** Settings of the bucket, for the remedies that errors name. */
  readonly settings: BucketSettings;
}

/**
 * A bucket that is used only after a probe has shown that it does what the object tier relies on. Before that, nothing else is
 * sent. Calls during the first probe wait for it for a short time. All others reject with `circuit_open`.
 */
export class ProbedStore extends ForwardingStore {
  readonly #parts: ProbedStoreParts;
  #state: BucketState = { kind: "probing" };
  #running: Promise<BucketState> | undefined;

  /** Resolves after the first probe, or {@link FIRST_PROBE_MS} after the first call. */
  readonly #first = Promise.withResolvers<void>();
  #hasCaller = false;

  constructor(parts: ProbedStoreParts) {
    super();
    this.#parts = parts;
  }

  override readonly put: ObjectStore["put"] = async (key, bytes, options) =>
    this.forward((store) => store.put(key, bytes, this.#asAble(options)));
  override readonly putLarge: ObjectStore["putLarge"] = async (key, source, options) =>
    this.forward((store) => store.putLarge(key, source, this.#asAble(options)));

  /** Whether manifests rely on conditions on writes, and not on rows of the database. True before the probe. */
  get hasConditions(): boolean {
    return this.#state.kind !== "usable" || this.#state.abilities.conditions;
  }

  get state(): BucketState {
    return this.#state;
  }

  override now(): number {
    return this.#parts.guarded.now();
  }

  override async close(): Promise<void> {
    await this.#parts.guarded.close();
  }

  /** Probes the bucket once. Callers that come while a probe runs share it. @throws the reason of the signal */
  async probe(signal?: AbortSignal): Promise<BucketState> {
    this.#running ??= this.#probe(signal).finally(() => (this.#running = undefined));
    return await untilAborted(this.#running, signal);
  }

  /** Probes the bucket until it can be used, and then whether it still honours conditions. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#parts;
    try {
      for (;;) {
        if (this.#state.kind !== "usable") await this.probe(signal);
        // Rows of the database are right in any bucket.
        if (this.#state.kind === "usable" && !this.#state.abilities.conditions) return;
        await clock.sleep(this.#state.kind === "usable" ? CHECK_AGAIN_MS : RETRY_MS, signal);
        if (this.#state.kind === "usable" && (await this.#hasLostConditions(this.#state.abilities, signal)))
          await this.probe(signal);
      }
    } catch (error) {
      if (!signal.aborted) logger.error({ err: error }, "the bucket could not be probed");
    }
  }

  /** Whether a bucket that is used ignores conditions now. A store that fails says nothing about it. Never rejects. */
  async #hasLostConditions(before: StoreAbilities, signal: AbortSignal): Promise<boolean> {
    const { store, prefix, clock } = this.#parts;
    using limit = new TimeLimit(clock, PROBE_LIMIT_MS, signal);
    try {
      const { conditions, rows } = await probeStore(store, { prefix, signal: limit.signal });
      const had = new Set(before.rows.filter(({ result }) => result === "yes").map(({ ability }) => ability));
      return !conditions && rows.some(({ ability, result }) => result === "no" && had.has(ability));
    } catch {
      return false;
    }
  }

  async #probe(signal: AbortSignal | undefined): Promise<BucketState> {
    const { store, prefix, pointers, clock, onState, settings } = this.#parts;
    using limit = new TimeLimit(clock, PROBE_LIMIT_MS, ...(signal === undefined ? [] : [signal]));
    let state: BucketState;
    try {
      const abilities = await probeStore(store, { prefix, signal: limit.signal });
      state = stateOf(abilities, pointers !== undefined, settings);
      if (state.kind === "usable" && pointers !== undefined)
        state = {
          kind: "usable",
          abilities: await untilAborted(this.#asRecorded(abilities, pointers), limit.signal),
        };
    } catch (error) {
      signal?.throwIfAborted();
      const reason = error instanceof ObjectStoreError ? bucketFault(error, settings) : messageOf(error);
      state = { kind: "unusable", reason };
    }
    this.#log(state);
    this.#state = state;
    this.#first.resolve();
    onState(state);
    return state;
  }

  /** The abilities, without conditions if the database names the manifests of this bucket already. Records that it does. */
  async #asRecorded(
    abilities: StoreAbilities,
    pointers: Pick<PointersInUse, "isSet" | "set">,
  ): Promise<StoreAbilities> {
    if (!abilities.conditions) await pointers.set();
    return { ...abilities, conditions: abilities.conditions && !(await pointers.isSet()) };
  }

  #log(state: BucketState): void {
    const { logger } = this.#parts;
    const before = this.#state;
    if (state.kind === "usable") {
      const { conditions } = state.abilities;
      if (before.kind === "usable" && before.abilities.conditions && !conditions)
        logger.warn({}, "the bucket ignores conditions now: the database names its manifests from here on");
      logger.info({ conditions }, "the bucket is used");
    } else if (state.kind === "unusable" && (before.kind !== "unusable" || before.reason !== state.reason))
      logger.error({ reason: state.reason }, "the bucket is not used: only the local cache is");
  }

  protected override async forward<T>(call: (store: ObjectStore) => Promise<T>): Promise<T> {
    await this.decided();
    if (this.#state.kind === "usable") return await call(this.#parts.guarded);
    const reason = this.#state.kind === "unusable" ? this.#state.reason : "it is being probed";
    throw new ObjectStoreError("circuit_open", `Cannot use the bucket: ${reason}`);
  }

  /** Waits for the first probe, but not for long. */
  async decided(): Promise<void> {
    if (this.#state.kind !== "probing") return;
    if (!this.#hasCaller) void this.#parts.clock.sleep(FIRST_PROBE_MS).then(() => this.#first.resolve());
    this.#hasCaller = true;
    await this.#first.promise;
  }

  /** Conditions that the store ignores are not sent: another store may refuse such a request. */
  #asAble<Options extends PutOptions>(options: Options | undefined): Options | undefined {
    if (this.hasConditions || options === undefined) return options;
    const { condition: _, ...others } = options;
    return others as Options;
  }
}

/**
 * Decision about a bucket from its abilities.
 *
 * @param hasDatabase whether the instances share a database
 * @param settings for the remedies that the reason names
 */
export function stateOf(
  abilities: StoreAbilities,
  hasDatabase: boolean,
  settings: BucketSettings,
): BucketState {
  const { rows, usable, conditions, missingPermissions } = abilities;
  if (usable && conditions) return { kind: "usable", abilities };
  if (missingPermissions.length > 0) {
    const reason = `the credentials lack the permissions ${missingPermissions.join(", ")}`;
    return { kind: "unusable", reason };
  }
  const failed = rows.find(({ result }) => result === "failed");
  if (failed !== undefined)
    return { kind: "unusable", reason: rowReason(failed, settings) ?? failed.ability };
  const lacking = rows.filter(({ result }) => result === "no").map(({ ability }: ProbeRow) => ability);
  if (!usable || lacking.includes("multipart upload"))
    return { kind: "unusable", reason: `the store does not have ${lacking.join(", ")}` };
  if (hasDatabase) return { kind: "usable", abilities };
  return {
    kind: "unusable",
    reason:
      `the store does not honour conditions (${lacking.join(", ")}). ` +
      "Such a bucket can be used only by instances with a common Postgres (database.driver: postgres)",
  };
}
