import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { systemCode } from "@devplat/base";
import { JsonError, SecretStoreError, unavailable } from "../errors.ts";
import { preparePrivateFile, preparePrivateFolder } from "./files.ts";
import { KeyFile, ValueCipher } from "./key.ts";

/** Maximum wait for another process's write, in milliseconds. A write takes about one fsync. */
const BUSY_TIMEOUT_MS = 2_000;
/** `PRAGMA user_version` of this schema. A file that was never initialised has 0. */
const SCHEMA_VERSION = 1;
/** Name of a value that is encrypted at creation, to distinguish a wrong key from a corrupt value. */
const KEY_CHECK = "key check";

const SCHEMA = `
  CREATE TABLE key_check (sealed BLOB NOT NULL) STRICT;
  -- One row per version; the newest row of a path is the secret. Paths include the user's root.
  CREATE TABLE version (
    path TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (path, version)
  ) STRICT;
  -- What other processes read to learn of a write; only the newest rows are kept.
  CREATE TABLE change (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('written', 'deleted'))
  ) STRICT;
`;

/** An open database file and the cipher of its values. */
export interface EmbeddedDatabase {
  readonly database: DatabaseSync;
  readonly cipher: ValueCipher;
}

/**
 * Opens the database. The first call creates it and its key. After a crash in between, the next call completes the
 * creation. Two processes may open the database concurrently.
 *
 * @throws SecretStoreError `insecure_files`, `corrupt`, `misconfigured` (made by a newer release), `unavailable`
 */
export function openDatabase(path: string, keyPath: string): EmbeddedDatabase {
  for (const folder of new Set([dirname(path), dirname(keyPath)])) preparePrivateFolder(folder);
  preparePrivateFile(path);
  const keyFile = new KeyFile(keyPath);
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
    // FULL: a completed write survives a power failure, also in WAL mode.
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    if (schemaVersion(database) === 0) initialise(database, path, keyFile);
    const found = schemaVersion(database);
    if (found !== SCHEMA_VERSION) {
      throw new SecretStoreError(
        "misconfigured",
        `cannot open ${path}: its schema has version ${found}, this release supports ${SCHEMA_VERSION}`,
        { hint: "Use the release that wrote it, or a newer one." },
      );
    }
    const cipher = new ValueCipher(keyFile.load());
    checkKey(database, cipher, keyPath);
    return { database, cipher };
  } catch (error) {
    database?.close();
    throw asStoreError(error, `open ${path}`);
  }
}

function initialise(database: DatabaseSync, path: string, keyFile: KeyFile): void {
  // The lock is held until the key is adopted, so that of two concurrent processes only one makes a key.
  database.exec("BEGIN IMMEDIATE");
  try {
    if (schemaVersion(database) === 0) {
      if (keyFile.exists()) {
        throw new SecretStoreError("corrupt", `cannot open ${path}: it is empty, although its key exists`, {
          hint: `Restore the file from a backup. To start again without the old secrets, remove ${keyFile.path}.`,
        });
      }
      const cipher = new ValueCipher(keyFile.prepare());
      database.exec(SCHEMA);
      database.prepare("INSERT INTO key_check (sealed) VALUES (?)").run(cipher.seal(KEY_CHECK, KEY_CHECK));
      database.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
    }
    database.exec("COMMIT");
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
  keyFile.adopt();
}

function schemaVersion(database: DatabaseSync): number {
  return Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
}

function checkKey(database: DatabaseSync, cipher: ValueCipher, keyPath: string): void {
  const sealed = database.prepare("SELECT sealed FROM key_check").get()?.["sealed"];
  if (sealed instanceof Uint8Array && cipher.open(KEY_CHECK, sealed) === KEY_CHECK) return;
  throw new SecretStoreError("corrupt", `cannot open the store: ${keyPath} is not the key of its values`, {
    hint: "Restore the key file and the database from the same backup.",
  });
}

/** Primary result codes of SQLite (sqlite.org/rescode.html). */
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

/** Converts errors of node:sqlite and the file system to SecretStoreError. Returns any other error unchanged. */
export function asStoreError(error: unknown, action: string): unknown {
  if (error instanceof SecretStoreError) return error;
  const result = error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : undefined;
  if (result === SQLITE_CORRUPT || result === SQLITE_NOTADB || error instanceof JsonError) {
    return new SecretStoreError("corrupt", `cannot ${action}: the file is damaged or is not a store`, {
      hint: "Restore the file from a backup.",
      cause: error,
    });
  }
  const fault = result === undefined ? systemCode(error) : `SQLite result ${result}`;
  return fault === undefined ? error : unavailable(`cannot ${action}: ${fault}`, { cause: error });
}
