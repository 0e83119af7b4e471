import type { Secret } from "@devplat/base";
import {
  SecretStoreError,
  type Fields,
  type ReadOptions,
  type SecretChange,
  type SecretDocument,
  type SecretMetadata,
  type SecretStore,
  type WriteOptions,
} from "@devplat/secret-store";
import { traced, type OperationName } from "../telemetry/operation.ts";
import type { StoreHealth } from "./store-health.ts";

export interface ObservedStoreParts {
  readonly store: SecretStore;
  readonly health: StoreHealth;
  /** Holds the token of the store's requests. Default: the store needs none. */
  readonly signIn?: { token(): Secret | undefined; invalidate(): void };
}

/** A time limit that several requests share. */
interface Limit {
  readonly ms: number;
  readonly signal: AbortSignal;
}

/**
 * A store that was silent for this long, in milliseconds, when a limit ended the request is taken to be away. A request
 * that began shortly before the end of a long search says nothing.
 */
const SILENCE_MS = 1000;

type RequestName = Extract<OperationName, `store.${string}`>;

/** A store that records for each result whether the store responds, and whether it accepts the token. */
export class ObservedStore implements SecretStore {
  readonly driver: SecretStore["driver"];
  readonly #parts: ObservedStoreParts;
  readonly #limit: Limit | undefined;

  constructor(parts: ObservedStoreParts, limit?: Limit) {
    this.driver = parts.store.driver;
    this.#parts = parts;
    this.#limit = limit;
  }

  /** The same store for one task: what has not ended after this time, in milliseconds, fails as `unavailable`. */
  within(ms: number): ObservedStore {
    return new ObservedStore(this.#parts, { ms, signal: AbortSignal.timeout(ms) });
  }

  list(folder: string, options: { signal?: AbortSignal } = {}): Promise<readonly string[]> {
    return this.#noted("store.list", () => this.#parts.store.list(folder, this.#limited(options)));
  }

  read(path: string, options: ReadOptions = {}): Promise<SecretDocument> {
    return this.#noted("store.read", () => this.#parts.store.read(path, this.#limited(options)));
  }

  metadata(path: string, options: { signal?: AbortSignal } = {}): Promise<SecretMetadata> {
    return this.#noted("store.metadata", () => this.#parts.store.metadata(path, this.#limited(options)));
  }

  write(path: string, fields: Fields, options: WriteOptions = {}): Promise<{ version: number }> {
    return this.#noted("store.write", () => this.#parts.store.write(path, fields, this.#limited(options)));
  }

  delete(path: string, options: { signal?: AbortSignal } = {}): Promise<void> {
    return this.#noted("store.delete", () => this.#parts.store.delete(path, this.#limited(options)));
  }

  /** Not noted: it ends when its connection does, and not every store has it. */
  watch(signal: AbortSignal, opened?: () => void): AsyncIterable<SecretChange> {
    return this.#parts.store.watch(signal, opened);
  }

  ping(signal?: AbortSignal): Promise<void> {
    const { signal: limited } = this.#limited(signal === undefined ? {} : { signal });
    return this.#noted("store.ping", () => this.#parts.store.ping(limited));
  }

  close(): Promise<void> {
    return this.#parts.store.close();
  }

  #limited<T extends { signal?: AbortSignal }>(options: T): T {
    if (this.#limit === undefined) return options;
    const signals = [this.#limit.signal, ...(options.signal === undefined ? [] : [options.signal])];
    return { ...options, signal: AbortSignal.any(signals) };
  }

  #noted<T>(name: RequestName, request: () => Promise<T>): Promise<T> {
    return traced(name, { driver: this.driver }, () => this.#observed(request));
  }

  async #observed<T>(request: () => Promise<T>): Promise<T> {
    const { health, signIn } = this.#parts;
    const token = signIn?.token()?.reveal();
    const begun = performance.now();
    try {
      const result = await request();
      health.responded();
      return result;
    } catch (caught) {
      if (!(caught instanceof SecretStoreError)) throw caught;
      const error = this.#afterLimit(caught);
      if (error === caught || performance.now() - begun >= SILENCE_MS) health.failed(error);
      // The response concerns the token of the request. Another token may be in use since then.
      if (error.code === "unauthenticated" && token === signIn?.token()?.reveal()) signIn?.invalidate();
      throw error;
    }
  }

  /** Only a caller's own signal makes a request `aborted`: a request that our limit has ended got no response in time. */
  #afterLimit(error: SecretStoreError): SecretStoreError {
    if (error.code !== "aborted" || this.#limit?.signal.aborted !== true) return error;
    const seconds = this.#limit.ms / 1000;
    return new SecretStoreError("unavailable", `the store has not answered within ${seconds} s`, {
      remedy: "retry",
      cause: error,
    });
  }
}
