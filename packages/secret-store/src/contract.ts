/**
 * A value of a secret's field. Numbers are kept as the text that the store holds ({@link LosslessNumber}), never as
 * JavaScript numbers, so that nothing on this side changes 2^63, 1e400, -0 or 1.10. Objects are maps, so that an object with the
 * key `number` is no number, `__proto__` is a key like any other, and keys keep their order.
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

/** The fields of a secret, in the store's order. */
export type Fields = ReadonlyMap<string, FieldValue>;

/** What is known of a secret without reading its values. */
export interface SecretMetadata {
  /** Newest version; counts from 1. */
  readonly version: number;
  /** When that version was written, milliseconds since the epoch. */
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
 * Largest document, as compact JSON in UTF-8 bytes: 1 MiB, the API's own bound and the default `max_entry_size` of
 * Vault's integrated storage.
 */
export const MAX_DOCUMENT_BYTES = 1024 * 1024;

/** Conditions of a write. */
export interface WriteOptions {
  /**
   * Compare-and-set: the write succeeds only if this is the newest version; 0 means that nothing may exist (a deleted
   * secret does not exist).
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
 * The user's own part of a secrets store, whatever is behind it.
 *
 * Paths are relative to the user's root (`<kv_mount>/<user_prefix><username>/`), segments joined by `/`. They are never
 * normalised: an empty, `.` or `..` segment, NUL, a backslash, an encoded slash, a leading slash or anything
 * unprintable is `bad_path`.
 * A trailing slash means a folder, and only {@link SecretStore.list} takes one; `a` and `a/` may both exist.
 *
 * Every method throws SecretStoreError (errors.ts) and nothing else, and may be called at any time and at once.
 */
export interface SecretStore {
  readonly driver: "vault" | "embedded";

  /**
   * The names directly below a folder, sorted by code unit; folders end in `/`.
   * @param folder `""` for the root, else ending in `/`. A folder that holds nothing gives `not_found`, except the root: `[]`.
   */
  list(folder: string, options?: { signal?: AbortSignal }): Promise<readonly string[]>;
  /** The fields of a secret. A deleted or absent secret or version: `not_found`. */
  read(path: string, options?: ReadOptions): Promise<SecretDocument>;
  /** Versions without values. A deleted or absent secret: `not_found`. */
  metadata(path: string, options?: { signal?: AbortSignal }): Promise<SecretMetadata>;
  /**
   * Replaces the whole document; gives the new version.
   *
   * What was written is what is read, numbers included. Where the store behind a driver cannot keep a number or half
   * of a surrogate pair, the write is refused with `unsupported_number` or `unsupported_text`; another form of the same
   * number (1.10 as 1.1) is that store's matter.
   */
  write(path: string, fields: Fields, options?: WriteOptions): Promise<{ version: number }>;
  /** Removes every version and the metadata; there is no undelete. Nothing there: `not_found`. */
  delete(path: string, options?: { signal?: AbortSignal }): Promise<void>;
  /**
   * Changes as they happen, until the signal fires. After a gap (reconnect) it reports `{ path: "", kind: "written" }`:
   * anything may have changed. It throws when it breaks, and may then be called again; `unsupported` where the store
   * cannot tell (then poll metadata).
   * @param opened called once changes are noticed from then on
   */
  watch(signal: AbortSignal, opened?: () => void): AsyncIterable<SecretChange>;
  /** Proves that the store can be reached and the token is good. */
  ping(signal?: AbortSignal): Promise<void>;
  close(): Promise<void>;
}
