import type { AppError } from "@devplat/base";

/**
 * A value of a secret's field. Numbers are kept as the text that the store holds ({@link LosslessNumber}), never as
 * JavaScript numbers: 2^63, 1e400, -0 and 1.10 come back as they went in.
 */
export type FieldValue =
  | string
  | boolean
  | null
  | LosslessNumber
  | readonly FieldValue[]
  | { readonly [key: string]: FieldValue };

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
 * - `denied`: the store refused the token for this path (final until the token or its policies change).
 * - `unauthenticated`: there is no token, or it is no longer valid.
 * - `not_found`: nothing is stored at the path (or it was deleted).
 * - `version_conflict`: the compare-and-set version was not the stored one.
 * - `bad_path`: the path breaks the rules of {@link SecretStore}.
 * - `sealed`, `unavailable`: the store cannot answer now (remedy `retry`).
 * - `invalid_response`: it answered something that is not of its protocol.
 */
export type SecretStoreErrorCode =
  | "denied"
  | "unauthenticated"
  | "not_found"
  | "version_conflict"
  | "bad_path"
  | "sealed"
  | "unavailable"
  | "invalid_response";

export type SecretStoreError = AppError<SecretStoreErrorCode>;

/** Conditions of a write. */
export interface WriteOptions {
  /** Compare-and-set: the write succeeds only if this is the newest version; 0 means that nothing may exist. */
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
 * normalised: an empty, `.` or `..` segment, NUL, a backslash, an encoded slash or a leading slash is `bad_path`.
 * A trailing slash means a folder, and only {@link SecretStore.list} takes one; `a` and `a/` may both exist.
 *
 * Every method throws {@link SecretStoreError} and nothing else, and may be called at any time and at once.
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
  /** Replaces the whole document; gives the new version. */
  write(path: string, fields: Fields, options?: WriteOptions): Promise<{ version: number }>;
  /** Removes every version and the metadata; there is no undelete. Nothing there: `not_found`. */
  delete(path: string, options?: { signal?: AbortSignal }): Promise<void>;
  /**
   * Changes as they happen, until the signal fires; undefined where the store cannot tell (then poll metadata).
   * After a gap (reconnect) it reports `{ path: "", kind: "written" }`: anything may have changed.
   */
  watch?(signal: AbortSignal): AsyncIterable<SecretChange>;
  /** Proves that the store can be reached and the token is good. */
  ping(signal?: AbortSignal): Promise<void>;
  close(): Promise<void>;
}
