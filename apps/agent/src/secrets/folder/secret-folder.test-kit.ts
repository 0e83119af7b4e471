import { Secret, silentLogger, systemClock, type Clock } from "@devplat/base";
import { openEmbeddedStore, openVaultStore, userRoot, type SecretStore } from "@devplat/secret-store";
import { StoreWatch } from "../../sync/store-watch.ts";
import { CachedSecrets, type CachedSecretsOptions } from "./cached-secrets.ts";
import { SecretFolder } from "./secret-folder.ts";
import type { StoreChanges } from "./store-changes.ts";

/** A store that counts its requests and does what a test tells it before one. */
export interface ObservedRequests {
  readonly store: SecretStore;
  /** Every request, such as `list a/`. */
  readonly calls: string[];
  /** Number of concurrent requests, and the most so far. */
  readonly running: { now: number; most: number };
  /** Runs before each request. It may throw, or wait. */
  before: (call: string, signal: AbortSignal | undefined) => void | Promise<void>;
}

export function observed(store: SecretStore): ObservedRequests {
  const calls: string[] = [];
  const running = { now: 0, most: 0 };
  const seen = async <T>(
    call: string,
    signal: AbortSignal | undefined,
    request: () => Promise<T>,
  ): Promise<T> => {
    calls.push(call);
    running.now++;
    running.most = Math.max(running.most, running.now);
    try {
      await result.before(call, signal);
      return await request();
    } finally {
      running.now--;
    }
  };
  const result: ObservedRequests = {
    calls,
    running,
    before: () => undefined,
    store: {
      driver: store.driver,
      list: (folder, options) => seen(`list ${folder}`, options?.signal, () => store.list(folder, options)),
      metadata: (path, options) =>
        seen(`version ${path}`, options?.signal, () => store.metadata(path, options)),
      read: (path, options) => seen(`read ${path}`, options?.signal, () => store.read(path, options)),
      write: (path, fields, options) => store.write(path, fields, options),
      delete: (path, options) => store.delete(path, options),
      watch: (signal, opened) => store.watch(signal, opened),
      ping: (signal) => store.ping(signal),
      close: () => store.close(),
    },
  };
  return result;
}

export interface FolderStand extends AsyncDisposable {
  readonly secrets: CachedSecrets;
  readonly watch: StoreWatch;
  readonly signal: AbortSignal;
  folder(roots: readonly string[], pollMs?: number): SecretFolder;
}

/** A cache over a store whose events are followed, as the daemon has it. */
export function folderStand(
  store: SecretStore,
  options: Partial<CachedSecretsOptions> & { readonly clock?: Clock; readonly events?: boolean } = {},
): FolderStand {
  const { clock = systemClock, events = true, ...rest } = options;
  const end = new AbortController();
  const parts = { store, clock, logger: silentLogger };
  const watch = new StoreWatch(parts);
  const done = events ? watch.run(end.signal, { onChange: () => undefined }) : Promise.resolve();
  const changes: StoreChanges = watch;
  const secrets = new CachedSecrets({ ...parts, changes }, { ttlMs: 60_000, ...rest });
  return {
    secrets,
    watch,
    signal: end.signal,
    folder: (roots, pollMs = 60_000) => new SecretFolder({ ...parts, secrets, changes }, { roots, pollMs }),
    async [Symbol.asyncDispose]() {
      end.abort();
      secrets.close();
      await done;
    },
  };
}

const ROOT = { mount: "kv", prefix: "users/", username: "ada" };

export function embedded(folder: string): Promise<SecretStore> {
  return openEmbeddedStore({ folder, root: userRoot(ROOT) });
}

export function vaultStore(address: string, token: () => string): SecretStore {
  return openVaultStore({
    address,
    root: userRoot(ROOT),
    token: () => new Secret(token()),
    timing: { firstMs: 10, tryMs: 2000, callMs: 4000 },
    environment: {},
  });
}
