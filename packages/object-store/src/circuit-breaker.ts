import type { Readable } from "node:stream";
import { systemClock, type Clock } from "@devplat/base";
import { ObjectStoreError, type ObjectStoreErrorCode } from "./errors.ts";
import { ForwardingStore } from "./forwarding-store.ts";
import type { ObjectStore } from "./object-store.ts";

/** Failures within {@link WINDOW_MS} that open the circuit. */
const FAILURES = 5;
const WINDOW_MS = 10_000;
/** Time that the circuit stays open before one call may try the store. */
const OPEN_MS = 30_000;

/** Faults of the store as a whole. Others say something about one object, or about the settings. */
const FAULTS_OF_STORE: ReadonlySet<ObjectStoreErrorCode> = new Set<ObjectStoreErrorCode>([
  "slow_down",
  "store_failed",
  "unreachable",
  "timeout",
]);

/**
 * - `closed`: calls go to the store.
 * - `open`: calls fail immediately with `circuit_open`.
 * - `trying`: one call is at the store, and decides. The others fail.
 */
export type CircuitState = "closed" | "open" | "trying";

export interface CircuitBreakerOptions {
  readonly clock?: Pick<Clock, "monotonic">;
  /** Called after each change of the state, for logs and metrics. */
  readonly onChange?: (state: CircuitState) => void;
}

/** An object store that is left alone while it fails, so that no request waits for it. */
export class CircuitBreaker extends ForwardingStore {
  readonly #store: ObjectStore;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #onChange: (state: CircuitState) => void;
  #state: CircuitState = "closed";
  /** Times of recent failures, in monotonic milliseconds. */
  #failures: number[] = [];
  #openUntil = 0;

  constructor(
    store: ObjectStore,
    { clock = systemClock, onChange = () => undefined }: CircuitBreakerOptions = {},
  ) {
    super();
    this.#store = store;
    this.#clock = clock;
    this.#onChange = onChange;
  }

  override readonly get: ObjectStore["get"] = async (...args) => {
    const result = await this.forward((store) => store.get(...args));
    if (result.modified) this.#watch(result.body);
    return result;
  };

  get state(): CircuitState {
    return this.#state === "open" && this.#clock.monotonic() >= this.#openUntil ? "trying" : this.#state;
  }

  override now(): number {
    return this.#store.now();
  }

  override async close(): Promise<void> {
    await this.#store.close();
  }

  protected override async forward<T>(call: (store: ObjectStore) => Promise<T>): Promise<T> {
    const isTrial = this.#admit();
    try {
      const result = await call(this.#store);
      if (isTrial) this.#change("closed");
      return result;
    } catch (error) {
      if (isFaultOfStore(error)) this.#countFailure(isTrial);
      // Any other response shows that the store works. A call that its caller ended shows nothing.
      else if (isTrial) this.#change(error instanceof ObjectStoreError ? "closed" : "open");
      throw error;
    }
  }

  /** @returns whether the call decides about the circuit @throws ObjectStoreError `circuit_open` */
  #admit(): boolean {
    if (this.#state === "closed") return false;
    if (this.#state === "open" && this.#clock.monotonic() >= this.#openUntil) {
      this.#change("trying");
      return true;
    }
    throw new ObjectStoreError(
      "circuit_open",
      "Cannot use the object store: it failed several times a moment ago, and is tried again soon",
    );
  }

  #countFailure(isTrial: boolean): void {
    const now = this.#clock.monotonic();
    this.#failures = [...this.#failures.filter((at) => now - at < WINDOW_MS), now];
    // Calls that began before the circuit opened do not keep it open for longer.
    if (!isTrial && (this.#state !== "closed" || this.#failures.length < FAILURES)) return;
    this.#openUntil = now + OPEN_MS;
    this.#change("open");
  }

  /** Counts a transfer that breaks off in the middle. */
  #watch(body: Readable): void {
    body.on("error", (error: unknown) => {
      if (isFaultOfStore(error)) this.#countFailure(false);
    });
  }

  #change(state: CircuitState): void {
    if (state === "closed") this.#failures = [];
    if (this.#state === state) return;
    this.#state = state;
    this.#onChange(state);
  }
}

function isFaultOfStore(error: unknown): boolean {
  return error instanceof ObjectStoreError && FAULTS_OF_STORE.has(error.code);
}
