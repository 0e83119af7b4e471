/**
 * A value of a secret's field. Numbers are kept as the text in the store ({@link LosslessNumber}), never as
 * JavaScript numbers, which would change 2^63, 1e400, -0 or 1.10. Objects are maps. So an object with the
 * key `number` is not a number, `__proto__` is an ordinary key, and keys keep their order.
 */
export type FieldValue =
  | string
  | boolean
  | null
  | LosslessNumber
  | readonly FieldValue[]
  | ReadonlyMap<string, FieldValue>;

/** A JSON number as its source text (RFC 8259 section 6). */
export interface LosslessNumber {
  readonly number: string;
}

/** Fields of a secret, in the store's order. */
export type Fields = ReadonlyMap<string, FieldValue>;

/** Versions of a secret, without its values. */
export interface SecretMetadata {
  /** Newest version. Versions count from 1. */
  readonly version: number;
  /** Time of the newest version, in milliseconds since the epoch. */
  readonly createdAt: number;
  /** Versions that can still be read, oldest first. */
  readonly versions: readonly { readonly version: number; readonly createdAt: number }[];
}

export interface SecretDocument {
  readonly version: number;
  readonly createdAt: number;
  readonly fields: Fields;
}

/** One change that {@link SecretStore.watch} reports. `path` is relative to the user's root. */
export interface SecretChange {
  readonly path: string;
  readonly kind: "written" | "deleted";
}

/**
 * Maximum document as compact JSON, in UTF-8 bytes. 1 MiB is the limit of the API and the default `max_entry_size` of
 * Vault's integrated storage.
 */
export const MAX_DOCUMENT_BYTES = 1024 * 1024;

/** Conditions of a write. */
export interface WriteOptions {
  /**
   * Compare-and-set: the write succeeds only if this is the newest version. 0 means that the secret must not exist. A deleted
   * secret does not exist.
   */
  readonly ifVersion?: number;
  readonly signal?: AbortSignal;
}

export interface ReadOptions {
  /** An old version. Default: the newest. */
  readonly version?: number;
  readonly signal?: AbortSignal;
}

/**
 * The user's own part of a secrets store. Each driver implements this contract.
 *
 * Paths are relative to the user's root (`<kv_mount>/<user_prefix><username>/`), segments joined by `/`. They are never
 * normalised. An empty, `.` or `..` segment, NUL, a backslash, an encoded slash, a leading slash or an
 * unprintable character is `bad_path`.
 * A trailing slash means a folder. Only {@link SecretStore.list} accepts one. `a` and `a/` may both exist.
 *
 * Every method throws only SecretStoreError (errors.ts). Methods may be called at any time, also concurrently.
 */
export interface SecretStore {
  readonly driver: "vault" | "embedded";

  /**
   * Names directly below a folder, sorted by code unit. Folders end in `/`.
   * @param folder `""` for the root, else a path that ends in `/`. An empty folder gives `not_found`, an empty root `[]`.
   */
  list(folder: string, options?: { signal?: AbortSignal }): Promise<readonly string[]>;
  /** Fields of a secret. @throws `not_found` for a deleted or absent secret or version */
  read(path: string, options?: ReadOptions): Promise<SecretDocument>;
  /** Versions without values. @throws `not_found` for a deleted or absent secret */
  metadata(path: string, options?: { signal?: AbortSignal }): Promise<SecretMetadata>;
  /**
   * Replaces the complete document. Returns the new version.
   *
   * `read` returns exactly the written values, including numbers. If the store cannot keep a number or half
   * of a surrogate pair, the write is refused with `unsupported_number` or `unsupported_text`. A store may change the form
   * of a number (1.10 as 1.1).
   */
  write(path: string, fields: Fields, options?: WriteOptions): Promise<{ version: number }>;
  /** Deletes every version and the metadata. This cannot be undone. @throws `not_found` if the secret does not exist */
  delete(path: string, options?: { signal?: AbortSignal }): Promise<void>;
  /**
   * Reports changes until the signal fires. After a gap (reconnect) it reports `{ path: "", kind: "written" }`:
   * anything may have changed. If the stream breaks, it throws, and the caller may call it again. `unsupported` means that the
   * store does not report changes. The caller must then poll metadata.
   * @param opened called when the stream is open and reports further changes
   */
  watch(signal: AbortSignal, opened?: () => void): AsyncIterable<SecretChange>;
  /** Checks that the store can be reached and the token is valid. */
  ping(signal?: AbortSignal): Promise<void>;
  close(): Promise<void>;
}
