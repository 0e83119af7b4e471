/**
 * Codes of all errors of this package, a closed set. Callers must match on the code, not on the message.
 *
 * | code | meaning |
 * | --- | --- |
 * | `not_a_pack` | no `PACK` signature, or a version other than 2 |
 * | `bad_entry` | an entry has an invalid type number or header |
 * | `corrupt_zlib` | an entry's compressed data does not inflate |
 * | `wrong_size` | an entry inflates to more or less than its header says |
 * | `corrupt_delta` | the instructions of a delta are incomplete, use opcode 0, or do not add up to its result size |
 * | `delta_out_of_base` | a delta copies from outside its base, or was made for a base of another size |
 * | `delta_bomb` | the deltas of a pack expand to more than the limit |
 * | `delta_cycle` | a delta chain contains a cycle |
 * | `duplicate_object` | a pack contains an object twice (`git index-pack --strict` refuses it, too) |
 * | `missing_base` | a delta's base is neither in the pack nor in the store |
 * | `trailing_garbage` | bytes follow the pack's trailer |
 * | `wrong_trailer` | the checksum at the end of a file is not that of its content |
 * | `truncated` | a file or stream ends too early |
 * | `too_large` | a limit on pack, object, or count is exceeded |
 * | `corrupt_index` | an `.idx` or `.rev` file is inconsistent, or does not match its pack |
 * | `corrupt_object` | an object's content does not parse, does not hash to its id, or differs from what was indexed |
 * | `missing_object` | an object is not in the store |
 * | `hash_collision` | an object belongs to a SHA-1 collision attack (not with `detectCollisions: false`) |
 * | `bad_oid` | a string is not an object id of the repository's object format |
 * | `bad_ref_name` | a name is not allowed by `git check-ref-format` |
 * | `not_a_repository` | a folder does not hold a bare repository |
 * | `unsupported_repository` | a repository uses an unknown format or extension |
 * | `corrupt_repository` | `config`, `HEAD` or `packed-refs` does not parse |
 * | `unservable` | this store cannot serve a fetch request; forward it to the origin |
 * | `ref_changed` | a ref does not have the value that its update expects |
 * | `ref_conflict` | a ref cannot be updated: its name conflicts with that of another ref, or it is symbolic |
 * | `locked` | another live process holds the lock |
 */
export type GitStoreErrorCode = (typeof GIT_STORE_ERROR_CODES)[number];

/** Codes of a pack that is at fault itself: who sent it gets the message, which names no file of the receiver. */
export const PACK_ERROR_CODES = [
  "not_a_pack",
  "bad_entry",
  "corrupt_zlib",
  "wrong_size",
  "corrupt_delta",
  "delta_out_of_base",
  "delta_bomb",
  "delta_cycle",
  "duplicate_object",
  "missing_base",
  "trailing_garbage",
  "wrong_trailer",
  "truncated",
  "too_large",
  "corrupt_object",
  "hash_collision",
] as const;

/** All codes, for tables and tests. */
export const GIT_STORE_ERROR_CODES = [
  ...PACK_ERROR_CODES,
  "corrupt_index",
  "missing_object",
  "bad_oid",
  "bad_ref_name",
  "not_a_repository",
  "unsupported_repository",
  "corrupt_repository",
  "unservable",
  "ref_changed",
  "ref_conflict",
  "locked",
] as const;

/** Place of an error, as far as known. */
export interface GitStoreErrorDetails {
  /** Byte offset in the pack at which the faulty entry starts. */
  readonly offset?: number;
  /** The object id in lower-case hex. */
  readonly oid?: string;
  /** Path of the file. */
  readonly path?: string;
}

/** The one error class of this package. */
export class GitStoreError extends Error {
  readonly code: GitStoreErrorCode;
  readonly details: GitStoreErrorDetails;
  /** `retry`: the same call may succeed later (only `locked`). `final`: it fails until the data change. */
  readonly remedy: "retry" | "final";

  constructor(
    code: GitStoreErrorCode,
    message: string,
    details: GitStoreErrorDetails = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "GitStoreError";
    this.code = code;
    this.details = details;
    this.remedy = code === "locked" ? "retry" : "final";
  }
}

/**
 * Creates the errors of one parser: `Cannot read <subject>: <found>`.
 *
 * @param subject noun phrase for the input, for example `a delta`
 */
export function corruptIn(
  code: GitStoreErrorCode,
  subject: string,
  details: GitStoreErrorDetails = {},
): (found: string) => GitStoreError {
  return (found) => new GitStoreError(code, `Cannot read ${subject}: ${found}`, details);
}

/** Whether this is an error of the system with one of these codes, such as `ENOENT`. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}

/** Whether an error of the file system says that there is no such file. */
export function isMissingFile(error: unknown): boolean {
  return hasCode(error, "ENOENT", "ENOTDIR");
}

/** Whether an error is not about the file: descriptors or memory ran out. */
export function isShortage(error: unknown): boolean {
  return hasCode(error, "EMFILE", "ENFILE", "ENOMEM");
}
