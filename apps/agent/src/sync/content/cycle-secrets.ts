import { SecretStoreError, type SecretDocument, type SecretStore } from "@devplat/secret-store";
import { inParallel } from "../../secrets/parallel.ts";
import { isStoreWide } from "../../secrets/store-health.ts";
import { stampOf } from "../../secrets/version-stamp.ts";

/** The secrets as one cycle sees them: each is asked for at most once, and values only where a rule needs them. */
export class CycleSecrets {
  readonly #store: SecretStore;
  readonly #signal: AbortSignal;
  readonly #stamps = new Map<string, Promise<string | undefined>>();
  readonly #documents = new Map<string, Promise<SecretDocument | undefined>>();

  constructor(store: SecretStore, signal: AbortSignal) {
    this.#store = store;
    this.#signal = signal;
  }

  /** {@link stampOf} the newest version, or undefined if nothing is stored. Reads no value. @throws SecretStoreError */
  stamp(path: string): Promise<string | undefined> {
    return once(this.#stamps, path, async () => {
      const found = await orMissing(this.#store.metadata(path, { signal: this.#signal }));
      return found === undefined ? undefined : stampOf(found);
    });
  }

  /** The newest document, or undefined if nothing is stored. @throws SecretStoreError */
  read(path: string): Promise<SecretDocument | undefined> {
    return once(this.#documents, path, () => orMissing(this.#store.read(path, { signal: this.#signal })));
  }

  /** Whether the store has a folder, as far as the token may know it. @throws SecretStoreError */
  async hasFolder(path: string): Promise<boolean> {
    try {
      return (await this.#store.list(`${path}/`, { signal: this.#signal })).length > 0;
    } catch (error) {
      if (isStoreWide(error)) throw error;
      return false;
    }
  }

  /** Whether a secret is stored, as far as the token may know it. @throws SecretStoreError */
  async isStored(path: string): Promise<boolean> {
    try {
      return (await this.stamp(path)) !== undefined;
    } catch (error) {
      if (isStoreWide(error)) throw error;
      return false;
    }
  }

  /** Asks for the versions of many secrets, some at a time. Errors show when the stamp is asked for. */
  async prefetch(paths: Iterable<string>): Promise<void> {
    await inParallel([...new Set(paths)], async (path) => {
      await this.stamp(path).catch(() => undefined);
    });
  }
}

function once<T>(cache: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
  let promise = cache.get(key);
  if (promise === undefined) {
    promise = make();
    cache.set(key, promise);
  }
  return promise;
}

async function orMissing<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof SecretStoreError && error.code === "not_found") return undefined;
    throw error;
  }
}
