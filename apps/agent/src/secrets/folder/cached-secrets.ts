import type { Clock } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import { Semaphore } from "@devplat/base/semaphore";
import {
  SecretStoreError,
  type SecretDocument,
  type SecretMetadata,
  type SecretStore,
} from "@devplat/secret-store";
import { MAX_PARALLEL } from "../parallel.ts";
import { foldersAbove } from "./folders-above.ts";
import { SharedRequests } from "./shared-requests.ts";
import type { StoreChanges } from "./store-changes.ts";

/** Maximum number of listings, versions and failures in memory. */
const MAX_ENTRIES = 20_000;
/** Maximum number of documents in memory. One has up to 1 MiB. */
const MAX_DOCUMENTS = 64;

/** Newest version of a secret. A secret that was removed and made again has another time. */
export type SecretVersion = Pick<SecretMetadata, "version" | "createdAt">;

export interface CachedSecretsParts {
  readonly store: Pick<SecretStore, "list" | "metadata" | "read">;
  readonly changes: StoreChanges;
  readonly clock: Clock;
}

export interface CachedSecretsOptions {
  /** Time for which a listing, a version or a response "does not exist" or "denied" is used again, in milliseconds. */
  readonly ttlMs: number;
  /** The same for values. Default 0: they are not kept. */
  readonly valuesTtlMs?: number;
  /** Concurrent requests to the store. Default 8. */
  readonly parallel?: number;
}

type Kept = { readonly value: unknown } | { readonly error: SecretStoreError };
type Kind = "list" | "version" | "read";

/**
 * Listings, versions and values of the store, each read once for all callers, kept for a short time and dropped when the
 * store reports a change. A failure is kept only if it is the store's decision about this path.
 */
export class CachedSecrets {
  readonly #parts: CachedSecretsParts;
  readonly #options: CachedSecretsOptions;
  readonly #turns: Semaphore;
  readonly #requests = new SharedRequests<unknown>();
  readonly #kept: BoundedMap<string, Kept>;
  readonly #documents: BoundedMap<string, SecretDocument>;
  readonly #end = new AbortController();
  /** Counts calls of {@link drop}. A response to a request from before the last one may be out of date. */
  #drops = 0;
  #sweeping = false;

  constructor(parts: CachedSecretsParts, options: CachedSecretsOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#turns = new Semaphore(options.parallel ?? MAX_PARALLEL);
    const now = (): number => parts.clock.monotonic();
    this.#kept = new BoundedMap({ max: MAX_ENTRIES, ttlMs: options.ttlMs, now });
    this.#documents = new BoundedMap({ max: MAX_DOCUMENTS, ttlMs: options.valuesTtlMs ?? 0, now });
    parts.changes.onChange(({ path }) => this.drop(path), this.#end.signal);
  }

  /** As {@link SecretStore.list}. @throws SecretStoreError; the reason of the signal */
  list(folder: string, signal: AbortSignal): Promise<readonly string[]> {
    return this.#get("list", folder, signal, (inner) => this.#parts.store.list(folder, { signal: inner }));
  }

  /** Newest version of a secret, without its values. @throws SecretStoreError; the reason of the signal */
  version(path: string, signal: AbortSignal): Promise<SecretVersion> {
    return this.#get("version", path, signal, async (inner) => {
      const { version, createdAt } = await this.#parts.store.metadata(path, { signal: inner });
      return { version, createdAt };
    });
  }

  /** As {@link SecretStore.read}, the newest version. @throws SecretStoreError; the reason of the signal */
  read(path: string, signal: AbortSignal): Promise<SecretDocument> {
    return this.#get("read", path, signal, (inner) => this.#parts.store.read(path, { signal: inner }));
  }

  /** Drops what is kept of a secret, and the listings above it. With `""`, everything. */
  drop(path: string): void {
    const folders = new Set(foldersAbove(path));
    this.#dropEach((kind, place) => path === "" || (kind === "list" ? folders.has(place) : place === path));
  }

  /** Drops what is kept of a secret, or of a folder with everything below it. A folder ends in `/`; `""` is everything. */
  dropBelow(root: string): void {
    const isFolder = root === "" || root.endsWith("/");
    this.#dropEach((_, place) => place === root || (isFolder && place.startsWith(root)));
  }

  #dropEach(isOutdated: (kind: Kind, place: string) => boolean): void {
    this.#drops++;
    const matches = (key: string): boolean => isOutdated(...placeOf(key));
    this.#requests.detach(matches);
    for (const map of [this.#kept, this.#documents]) {
      for (const [key] of map.entries()) if (matches(key)) map.delete(key);
    }
  }

  /** Ends requests and forgets everything. */
  close(): void {
    this.#end.abort();
    this.drop("");
  }

  async #get<T>(
    kind: Kind,
    place: string,
    signal: AbortSignal,
    request: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const key = `${kind} ${place}`;
    const document = this.#documents.get(key);
    if (document !== undefined) return document as T;
    const kept = this.#kept.get(key);
    if (kept !== undefined) {
      if ("error" in kept) throw kept.error;
      return kept.value as T;
    }
    const shared = (inner: AbortSignal): Promise<T> => this.#request(key, inner, request);
    return (await this.#requests.get(key, signal, shared)) as T;
  }

  async #request<T>(
    key: string,
    signal: AbortSignal,
    request: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const limit = AbortSignal.any([signal, this.#end.signal]);
    const release = await this.#turns.acquire(limit);
    const drops = this.#drops;
    try {
      const value = await request(limit);
      if (drops === this.#drops) this.#keep(key, value);
      return value;
    } catch (error) {
      if (drops === this.#drops && isDecision(error)) this.#kept.set(key, { error });
      throw error;
    } finally {
      release();
    }
  }

  #keep(key: string, value: unknown): void {
    if (this.#end.signal.aborted) return;
    if (!key.startsWith("read ")) {
      this.#kept.set(key, { value });
      return;
    }
    this.#documents.set(key, value as SecretDocument);
    void this.#sweep();
  }

  /** Removes values from memory at their end, also if nobody asks for them again. */
  async #sweep(): Promise<void> {
    if (this.#sweeping) return;
    this.#sweeping = true;
    const { valuesTtlMs = 0 } = this.#options;
    while (this.#documents.size > 0) {
      await this.#parts.clock.sleep(valuesTtlMs, this.#end.signal).catch(() => undefined);
      this.#documents.purge();
    }
    this.#sweeping = false;
  }
}

/** The store has decided about this path. Other errors say nothing about it. */
function isDecision(error: unknown): error is SecretStoreError {
  return error instanceof SecretStoreError && (error.code === "not_found" || error.code === "denied");
}

function placeOf(key: string): [Kind, string] {
  const space = key.indexOf(" ");
  return [key.slice(0, space) as Kind, key.slice(space + 1)];
}
