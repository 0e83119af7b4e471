import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "@devplat/base";
import { SecretStoreError, VaultRefusal, type VaultClient } from "@devplat/secret-store";
import { SvcError } from "../../errors.ts";
import { batches } from "./batches.ts";

/** Tries of a change that others make at the same time. Each round one of them succeeds. */
const MAX_TRIES = 50;
/** Maximum milliseconds between two tries. The pause is random, so that two callers that met once do not meet again. */
const MAX_PAUSE_MS = 20;
/** Vault's words for a check-and-set version that is not the stored one. */
const CAS_REFUSAL = "check-and-set parameter";
/** Document that is written to learn the clock of Vault. */
const CLOCK = "clock";
/** Milliseconds after which Vault's clock is asked for again. The clocks of two machines drift by less than 1 ms in that time. */
const CLOCK_AGE_MS = 10_000;

/** A document as it is stored. */
export interface Stored<T> {
  readonly value: T;
  /** For a compare-and-set. */
  readonly version: number;
  /** When it was written, by the clock of Vault: milliseconds since the epoch. */
  readonly writtenAt: number;
}

/**
 * JSON documents below one folder of a KV v2 mount (developer.hashicorp.com/vault/api-docs/secret/kv/kv-v2), changed by
 * compare-and-set: of two who change the same version, one is refused.
 *
 * @throws SvcError `database_unavailable` from every method
 */
export class VaultKv {
  readonly #client: VaultClient;
  readonly #mount: string;
  readonly #prefix: string;
  /** Vault's clock at the last write, and the clock of this process when its response came. */
  #clock: { readonly at: number; readonly monotonic: number } | undefined;

  constructor(client: VaultClient, place: { readonly mount: string; readonly prefix: string }) {
    this.#client = client;
    this.#mount = place.mount;
    this.#prefix = place.prefix;
  }

  /** @param version an earlier one, which Vault may have forgotten. Default: the current one */
  async read<T>(path: string, version?: number): Promise<Stored<T> | undefined> {
    const answer = await this.#asked(async () =>
      this.#client.request({
        method: "GET",
        path: this.#at("data", path),
        ...(version === undefined ? {} : { query: { version: String(version) } }),
      }),
    );
    const data = answer?.get("data");
    const text = data
      ?.get("data")
      .get("json")
      .or(undefined, (part) => part.string());
    if (data === undefined || text === undefined) return undefined;
    const metadata = data.get("metadata");
    return {
      value: JSON.parse(text) as T,
      version: metadata.get("version").integer(),
      writtenAt: metadata.get("created_time").time(),
    };
  }

  /**
   * Clock of Vault: milliseconds since the epoch. It is known from writes, and from a small write if there was none lately.
   * It is never ahead, so nothing ends too early.
   */
  async now(): Promise<number> {
    const known = this.#clock;
    if (known === undefined || systemClock.monotonic() - known.monotonic > CLOCK_AGE_MS) {
      await this.change<number>(CLOCK, (count = 0) => count + 1);
    }
    const { at, monotonic } = this.#clock ?? { at: systemClock.now(), monotonic: systemClock.monotonic() };
    return Math.floor(at + systemClock.monotonic() - monotonic);
  }

  /** Several documents, in the order of their paths. Missing ones are left out. */
  async readAll<T>(paths: readonly string[]): Promise<readonly Stored<T>[]> {
    const found: (Stored<T> | undefined)[] = [];
    for await (const some of batches(paths)) {
      found.push(...(await Promise.all(some.map(async (path) => this.read<T>(path)))));
    }
    return found.filter((each) => each !== undefined);
  }

  /** Paths of all documents below a folder, in their order. */
  async *paths(folder: string): AsyncGenerator<string> {
    for (const name of await this.list(folder)) {
      if (name.endsWith("/")) yield* this.paths(`${folder}/${name.slice(0, -1)}`);
      else yield `${folder}/${name}`;
    }
  }

  /** Time of Vault's clock at a write that begins now. */
  async moment(): Promise<number> {
    this.#clock = undefined;
    return this.now();
  }

  /** False: the stored version is another; 0 is that of a document that is not there. */
  async write(path: string, value: unknown, version: number): Promise<boolean> {
    const body = JSON.stringify({ data: { json: JSON.stringify(value) }, options: { cas: version } });
    try {
      const answer = await this.#client.request({ method: "POST", path: this.#at("data", path), body });
      this.#clock = {
        at: answer.get("data").get("created_time").time(),
        monotonic: systemClock.monotonic(),
      };
      return true;
    } catch (error) {
      if (error instanceof VaultRefusal && error.status === 400 && error.mentions(CAS_REFUSAL)) return false;
      throw unavailable(error);
    }
  }

  /**
   * Changes a document until no other change comes between.
   *
   * @param change gives the new value, or undefined to leave it as it is; undefined in means not there
   * @returns what is stored now
   * @throws SvcError `database_contention`: others changed it each time
   */
  async change<T>(
    path: string,
    change: (value: T | undefined, stored: Stored<T> | undefined) => T | undefined,
  ): Promise<T | undefined> {
    for (let tries = 1; tries <= MAX_TRIES; tries++) {
      const stored = await this.read<T>(path);
      const value = change(stored?.value, stored);
      if (value === undefined) return stored?.value;
      if (await this.write(path, value, stored?.version ?? 0)) return value;
      await sleep(Math.random() * MAX_PAUSE_MS);
    }
    throw new SvcError("database_contention", "Vault: too many instances change a record concurrently", {
      remedy: "retry",
    });
  }

  /**
   * Writes a document, whether it is there or not. A new one takes one request.
   *
   * @param value gives the new value, for the present one; undefined in means not there
   * @returns what is stored now
   * @throws SvcError `database_contention`: others changed it each time
   */
  async put<T>(path: string, value: (present: T | undefined) => T): Promise<T> {
    const created = value(undefined);
    if (await this.write(path, created, 0)) return created;
    return (await this.change<T>(path, value)) ?? created;
  }

  /** Removes a document with all its versions. One that is not there is no error. */
  async remove(path: string): Promise<void> {
    await this.#asked(async () =>
      this.#client.request({ method: "DELETE", path: this.#at("metadata", path), repeatable: true }),
    );
  }

  /** Removes the document if it is still that version; exactly one of racing callers gets true. */
  async removeVersion(path: string, version: number): Promise<boolean> {
    // KV v2 has no conditional removal: the one that writes the mark over that version has removed it.
    if (!(await this.write(path, null, version))) return false;
    await this.remove(path);
    return true;
  }

  /** Names below a folder, sorted; folders end in `/`. Empty where nothing is. */
  async list(folder: string): Promise<readonly string[]> {
    const answer = await this.#asked(async () =>
      this.#client.request({ method: "LIST", path: this.#at("metadata", folder) }),
    );
    return answer?.get("data").get("keys").strings().toSorted() ?? [];
  }

  #at(kind: "data" | "metadata", path: string): string {
    return [this.#mount, kind, this.#prefix, path].filter((part) => part !== "").join("/");
  }

  async #asked<T>(request: () => Promise<T>): Promise<T | undefined> {
    try {
      return await request();
    } catch (error) {
      if (error instanceof SecretStoreError && error.code === "not_found") return undefined;
      throw unavailable(error);
    }
  }
}

/** Any text as a name in a path. */
export function nameFor(text: string): string {
  return Buffer.from(text).toString("base64url");
}

/** The client's errors name requests and statuses, never values. */
export function unavailable(error: unknown): unknown {
  if (!(error instanceof SecretStoreError)) return error;
  const hint = HINTS[error.code];
  return new SvcError("database_unavailable", `Vault: ${error.message}`, {
    remedy: error.remedy,
    cause: error,
    ...(hint === undefined ? {} : { hint }),
  });
}

const HINTS: Partial<Record<SecretStoreError["code"], string>> = {
  denied:
    "The policy of the service's token must allow create, read, update, delete and list below the prefix.",
  unauthenticated: "Check vault.auth_method and its credentials.",
  misconfigured:
    "Check database.dsn, vault.mount (a KV version 2 engine), vault.namespace and vault.ca_file.",
  refused: "Check vault.mount, vault.auth_mount and the credentials of vault.auth_method.",
  sealed: "Its operators must unseal it.",
};
