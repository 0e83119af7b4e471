import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
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
import { SecretStoreError } from "../errors.ts";
import { notFound, printDocument, versionConflict } from "../document.ts";
import { parseFields } from "../json.ts";
import { checkFolder, checkPath, type UserRoot } from "../paths.ts";
import { followChanges, newestChange, recordChange } from "./change-feed.ts";
import { asStoreError, openDatabase, type EmbeddedDatabase } from "./database.ts";
import type { ValueCipher } from "./key.ts";

/** Maximum versions of each secret: Vault's default for `max_versions`. */
const VERSIONS_KEPT = 10;

export interface EmbeddedStoreOptions {
  /** Folder of the database and its key. A missing folder is created with mode 0700. A wider mode is refused. */
  readonly folder: string;
  /** Default `embedded.db` in `folder`. */
  readonly file?: string;
  /** Default `embedded.key` in `folder`. */
  readonly keyFile?: string;
  readonly root: UserRoot;
  readonly clock?: Clock;
}

/**
 * A store without a server: one SQLite file with values under AES-256-GCM, and a key file next to it. This protects only a
 * copy of the database. A program that can read the user's files can read the secrets.
 *
 * @throws SecretStoreError `insecure_files`, `corrupt`, `misconfigured`, `unavailable`
 */
export async function openEmbeddedStore(options: EmbeddedStoreOptions): Promise<SecretStore> {
  const file = options.file ?? join(options.folder, "embedded.db");
  const keyFile = options.keyFile ?? join(options.folder, "embedded.key");
  const opened = openDatabase(file, keyFile);
  return new EmbeddedStore(file, opened, options.root, options.clock ?? systemClock);
}

class EmbeddedStore implements SecretStore {
  readonly driver = "embedded";
  readonly #file: string;
  readonly #database: DatabaseSync;
  readonly #cipher: ValueCipher;
  /** Prefix of every stored path. */
  readonly #root: string;
  readonly #clock: Clock;

  constructor(file: string, { database, cipher }: EmbeddedDatabase, root: UserRoot, clock: Clock) {
    this.#file = file;
    this.#database = database;
    this.#cipher = cipher;
    this.#root = `${root.mount}/${root.folder}`;
    this.#clock = clock;
  }

  async list(folder: string, options: { signal?: AbortSignal } = {}): Promise<readonly string[]> {
    checkFolder(folder);
    const prefix = this.#root + folder;
    const names = this.#run(`list "${folder}"`, options.signal, () => {
      // "0" is the character after "/", so this range is the content of the folder.
      const below = this.#database.prepare("SELECT DISTINCT path FROM version WHERE path > ? AND path < ?");
      const paths = below.all(prefix, `${prefix.slice(0, -1)}0`).map((row) => String(row["path"]));
      return new Set(paths.map((path) => firstSegment(path.slice(prefix.length))));
    });
    if (names.size === 0 && folder !== "") throw notFound(folder);
    return [...names].toSorted();
  }

  async read(path: string, options: ReadOptions = {}): Promise<SecretDocument> {
    checkPath(path);
    return this.#run(`read "${path}"`, options.signal, () => {
      const row = this.#database
        .prepare(
          `SELECT version, created_at, sealed FROM version WHERE path = ? AND version = coalesce(?,
             (SELECT max(version) FROM version WHERE path = ?))`,
        )
        .get(this.#root + path, options.version ?? null, this.#root + path);
      if (row === undefined) throw notFound(path);
      const version = Number(row["version"]);
      const text = this.#cipher.open(this.#nameOf(path, version), row["sealed"] as Uint8Array);
      if (text === undefined) {
        throw new SecretStoreError(
          "corrupt",
          `cannot read "${path}": version ${version} is damaged in the file`,
          {
            hint: "Write the secret again, or restore the file from a backup.",
          },
        );
      }
      return { version, createdAt: Number(row["created_at"]), fields: parseFields(text) };
    });
  }

  async metadata(path: string, options: { signal?: AbortSignal } = {}): Promise<SecretMetadata> {
    checkPath(path);
    return this.#run(`read the versions of "${path}"`, options.signal, () => {
      const versions = this.#database
        .prepare("SELECT version, created_at FROM version WHERE path = ? ORDER BY version")
        .all(this.#root + path)
        .map((row) => ({ version: Number(row["version"]), createdAt: Number(row["created_at"]) }));
      const newest = versions.at(-1);
      if (newest === undefined) throw notFound(path);
      return { ...newest, versions };
    });
  }

  async write(path: string, fields: Fields, options: WriteOptions = {}): Promise<{ version: number }> {
    checkPath(path);
    const text = printDocument(path, fields);
    return this.#run(`write "${path}"`, options.signal, () =>
      this.#transaction(() => {
        const newest = this.#newestVersion(path);
        if (options.ifVersion !== undefined && options.ifVersion !== newest) {
          throw versionConflict(path, options.ifVersion);
        }
        const version = newest + 1;
        this.#database
          .prepare("INSERT INTO version (path, version, created_at, sealed) VALUES (?, ?, ?, ?)")
          .run(
            this.#root + path,
            version,
            this.#clock.now(),
            this.#cipher.seal(this.#nameOf(path, version), text),
          );
        this.#database
          .prepare("DELETE FROM version WHERE path = ? AND version <= ?")
          .run(this.#root + path, version - VERSIONS_KEPT);
        recordChange(this.#database, this.#root + path, "written");
        return { version };
      }),
    );
  }

  async delete(path: string, options: { signal?: AbortSignal } = {}): Promise<void> {
    checkPath(path);
    this.#run(`delete "${path}"`, options.signal, () =>
      this.#transaction(() => {
        const { changes } = this.#database
          .prepare("DELETE FROM version WHERE path = ?")
          .run(this.#root + path);
        if (changes === 0) throw notFound(path);
        recordChange(this.#database, this.#root + path, "deleted");
      }),
    );
  }

  watch(signal: AbortSignal, opened?: () => void): AsyncIterable<SecretChange> {
    // The position is read now, not at the first read of the iterable, so that no change is lost.
    const position = this.#run("watch the store", undefined, () => newestChange(this.#database));
    opened?.();
    return followChanges(this.#database, this.#file, this.#root, position, signal);
  }

  async ping(signal?: AbortSignal): Promise<void> {
    this.#run("reach the store", signal, () => this.#database.prepare("SELECT 1 FROM key_check").get());
  }

  async close(): Promise<void> {
    if (this.#database.isOpen) this.#database.close();
  }

  /** Newest version, or 0 if the secret does not exist. */
  #newestVersion(path: string): number {
    const row = this.#database.prepare("SELECT max(version) AS newest FROM version WHERE path = ?");
    return Number(row.get(this.#root + path)?.["newest"] ?? 0);
  }

  #nameOf(path: string, version: number): string {
    return `${this.#root}${path}\0${version}`;
  }

  #transaction<T>(action: () => T): T {
    // IMMEDIATE: no other process can write between the read of the version and the write.
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      const result = action();
      this.#database.exec("COMMIT");
      return result;
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  #run<T>(action: string, signal: AbortSignal | undefined, body: () => T): T {
    if (signal?.aborted === true)
      throw new SecretStoreError("aborted", `cannot ${action}: the caller aborted it`);
    try {
      return body();
    } catch (error) {
      throw asStoreError(error, action);
    }
  }
}

function firstSegment(path: string): string {
  const slash = path.indexOf("/");
  return slash === -1 ? path : path.slice(0, slash + 1);
}
