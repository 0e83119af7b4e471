import { systemClock, type Clock } from "@devplat/base";
import type {
  Fields,
  ReadOptions,
  SecretChange,
  SecretDocument,
  SecretMetadata,
  SecretStore,
  WriteOptions,
} from "../contract.ts";
import { notFound, printDocument, versionConflict } from "../document.ts";
import { SecretStoreError } from "../errors.ts";
import { printJson } from "../json.ts";
import { checkFolder, checkPath, type UserRoot } from "../paths.ts";
import { VaultClient, type VaultClientOptions } from "./client.ts";
import { changeOf } from "./event.ts";
import { checkKept } from "./kept-values.ts";
import { VaultRefusal } from "./refusal.ts";
import type { ResponsePart } from "./response.ts";

export interface VaultStoreOptions extends VaultClientOptions {
  readonly root: UserRoot;
}

/**
 * Opens the user's part of a Vault or OpenBao key-value mount, version 2. Sends no request before the first call.
 * @throws SecretStoreError `misconfigured` for an invalid address
 */
export function openVaultStore(options: VaultStoreOptions): SecretStore {
  return new VaultStore(new VaultClient(options), options.root, options.clock ?? systemClock);
}

/** Vault's error text for a compare-and-set version that is wrong or missing. */
const CAS_REFUSAL = "check-and-set parameter";

/** Path of all events of key-value engines. The server omits events that the token may not read. */
const EVENTS = "sys/events/subscribe/kv-v2/*";

class VaultStore implements SecretStore {
  readonly driver = "vault";
  readonly #client: VaultClient;
  readonly #root: UserRoot;
  readonly #clock: Clock;

  constructor(client: VaultClient, root: UserRoot, clock: Clock) {
    this.#client = client;
    this.#root = root;
    this.#clock = clock;
  }

  async list(folder: string, options: { signal?: AbortSignal } = {}): Promise<readonly string[]> {
    checkFolder(folder);
    try {
      const response = await this.#client.request({
        method: "LIST",
        path: this.#at("metadata", folder),
        ...options,
      });
      return response.get("data").get("keys").strings().toSorted();
    } catch (error) {
      if (!isNotFound(error)) throw error;
      if (folder === "") return [];
      throw notFound(folder);
    }
  }

  async read(path: string, options: ReadOptions = {}): Promise<SecretDocument> {
    checkPath(path);
    const { version, ...rest } = options;
    // For Vault, version 0 means the newest.
    if (version !== undefined && version < 1) throw notFound(path);
    const response = await this.#found(path, () =>
      this.#client.request({
        method: "GET",
        path: this.#at("data", path),
        ...(version !== undefined && { query: { version: String(version) } }),
        ...rest,
      }),
    );
    const data = response.get("data");
    const metadata = data.get("metadata");
    return {
      version: metadata.get("version").integer(),
      createdAt: metadata.get("created_time").time(),
      fields: data.get("data").map(),
    };
  }

  async metadata(path: string, options: { signal?: AbortSignal } = {}): Promise<SecretMetadata> {
    checkPath(path);
    const data = await this.#found(path, () => this.#metadata(path, options));
    const newest = data.get("current_version").integer();
    const versions = this.#readable(data, newest);
    const last = versions.at(-1);
    // The newest version was deleted or destroyed, or the metadata has no version.
    if (last === undefined || last.version !== newest) throw notFound(path);
    return { ...last, versions };
  }

  async write(path: string, fields: Fields, options: WriteOptions = {}): Promise<{ version: number }> {
    checkPath(path);
    const text = printDocument(path, fields);
    checkKept(path, fields);
    const { ifVersion, ...rest } = options;
    try {
      return await this.#put(path, text, ifVersion, rest);
    } catch (error) {
      if (error instanceof VaultRefusal && error.code === "too_large") {
        throw new SecretStoreError("too_large", `cannot write "${path}": it is over a limit of the store`, {
          ...(error.hint !== undefined && { hint: error.hint }),
        });
      }
      if (!(error instanceof VaultRefusal && error.status === 400 && error.mentions(CAS_REFUSAL)))
        throw error;
      if (
        ifVersion !== undefined &&
        error.uncertain &&
        (await this.#isStored(path, fields, ifVersion + 1, rest))
      ) {
        return { version: ifVersion + 1 };
      }
      const deleted = ifVersion === 0 ? await this.#deletedVersion(path, rest) : undefined;
      if (deleted !== undefined) return this.#recreate(path, text, deleted, rest);
      throw versionConflict(path, ifVersion);
    }
  }

  async delete(path: string, options: { signal?: AbortSignal } = {}): Promise<void> {
    checkPath(path);
    try {
      // Vault also sends 204 for a secret that does not exist. A secret exists if it has metadata, even without versions.
      await this.#metadata(path, options);
    } catch (error) {
      if (isNotFound(error)) throw notFound(path);
      // The token may delete, but not read the metadata.
      if (!(error instanceof SecretStoreError && error.code === "denied")) throw error;
    }
    await this.#client.request({
      method: "DELETE",
      path: this.#at("metadata", path),
      repeatable: true,
      ...options,
    });
  }

  async *watch(signal: AbortSignal, opened?: () => void): AsyncGenerator<SecretChange> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const left = new AbortController();
    const events = this.#client.subscribe(
      EVENTS,
      { json: "true" },
      AbortSignal.any([signal, left.signal]),
      () => {
        opened?.();
        resolve();
      },
    );
    try {
      const first = events.next();
      // `first` rejects if the stream is not opened.
      await Promise.race([promise, first]);
      if (signal.aborted) return;
      // Changes before the stream are unknown.
      yield { path: "", kind: "written" };
      for (let next = await first; next.done !== true; next = await events.next()) {
        const change = changeOf(next.value, this.#root);
        if (change !== undefined) yield change;
      }
    } finally {
      left.abort();
    }
  }

  async ping(signal?: AbortSignal): Promise<void> {
    const options = signal === undefined ? {} : { signal };
    await this.#client.lookupSelf(options);
    try {
      const path = `sys/internal/ui/mounts/${this.#root.mount}`;
      const data = (await this.#client.request({ method: "GET", path, ...options })).get("data");
      data.get("type").string();
      if (data.get("options").get("version").value !== "2") throw this.#noMount();
    } catch (error) {
      // The token has no right on the mount, or the mount does not exist. Vault does not distinguish the two.
      if (error instanceof SecretStoreError && error.code === "denied") throw this.#noMount();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  #at(part: "data" | "metadata", path: string): string {
    return `${this.#root.mount}/${part}/${this.#root.folder}${path}`;
  }

  async #put(
    path: string,
    text: string,
    cas: number | undefined,
    options: { signal?: AbortSignal },
  ): Promise<{ version: number }> {
    const condition = cas === undefined ? "" : `"options":{"cas":${cas}},`;
    const response = await this.#client.request({
      method: "POST",
      path: this.#at("data", path),
      body: `{${condition}"data":${text}}`,
      // A second write under the same compare-and-set version changes nothing.
      repeatable: cas !== undefined,
      ...options,
    });
    return { version: response.get("data").get("version").integer() };
  }

  /** Whether this write is stored, after its response was lost. */
  async #isStored(
    path: string,
    fields: Fields,
    version: number,
    options: { signal?: AbortSignal },
  ): Promise<boolean> {
    const stored = await this.read(path, options).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    if (stored === undefined) return false;
    const sorted = { sortKeys: true };
    return stored.version === version && printJson(stored.fields, sorted) === printJson(fields, sorted);
  }

  /** Newest version if it was deleted. The secret then does not exist, but Vault still counts its versions. */
  async #deletedVersion(path: string, options: { signal?: AbortSignal }): Promise<number | undefined> {
    const data = await this.#metadata(path, options);
    const newest = data.get("current_version").integer();
    return this.#readable(data, newest).at(-1)?.version === newest ? undefined : newest;
  }

  async #recreate(path: string, text: string, deleted: number, options: { signal?: AbortSignal }) {
    try {
      return await this.#put(path, text, deleted, options);
    } catch (error) {
      if (error instanceof VaultRefusal && error.mentions(CAS_REFUSAL)) throw versionConflict(path, 0);
      throw error;
    }
  }

  async #metadata(path: string, options: { signal?: AbortSignal }): Promise<ResponsePart> {
    return (await this.#client.request({ method: "GET", path: this.#at("metadata", path), ...options })).get(
      "data",
    );
  }

  /** Readable versions, oldest first. A version with a future deletion time (`delete_version_after`) is readable. */
  #readable(data: ResponsePart, newest: number): { version: number; createdAt: number }[] {
    const versions = data.get("versions");
    // Vault always lists the newest version, even if deleted. A response without it must not count as a deletion.
    if (newest > 0) versions.get(String(newest)).map();
    return versions
      .or<readonly string[]>([], (part) => [...part.map().keys()])
      .map((key) => ({ version: Number(key), state: versions.get(key) }))
      .filter(({ state }) => {
        const deletion = state.get("deletion_time").or("", (part) => part.string());
        const deleted = deletion !== "" && Date.parse(deletion) <= this.#clock.now();
        return !deleted && !state.get("destroyed").or(false, (part) => part.boolean());
      })
      .map(({ version, state }) => ({ version, createdAt: state.get("created_time").time() }))
      .toSorted((a, b) => a.version - b.version);
  }

  async #found<T>(path: string, action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (error) {
      throw isNotFound(error) ? notFound(path) : error;
    }
  }

  #noMount(): SecretStoreError {
    return new SecretStoreError(
      "misconfigured",
      `the store has no key-value mount of version 2 named "${this.#root.mount}" that this token may use`,
      { hint: "Check store.kv_mount; `vault secrets list -detailed` shows the mounts." },
    );
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof SecretStoreError && error.code === "not_found";
}
