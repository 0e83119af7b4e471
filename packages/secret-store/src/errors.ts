import { AppError, type AppErrorOptions } from "@devplat/base";

/**
 * - `denied`: the store refused the token for this path (final until the token or its policies change).
 * - `unauthenticated`: there is no token, or it is no longer valid.
 * - `not_found`: nothing is stored at the path (or it was deleted).
 * - `version_conflict`: the compare-and-set version was not the stored one.
 * - `bad_path`: the path, user name, prefix or mount breaks the rules of paths.ts.
 * - `too_large`: the document is over MAX_DOCUMENT_BYTES, nested deeper than MAX_JSON_DEPTH, or over a limit of the
 *   server (nesting, entries, items, bytes); the hint then says which.
 * - `unsupported_number`: vault; the store would give back another number than the one written.
 * - `unsupported_text`: vault; the same of a text with half of a surrogate pair.
 * - `sealed`, `unavailable`: the store cannot answer now (remedy `retry`).
 * - `aborted`: the caller's signal fired.
 * - `misconfigured`: the store has no key-value version 2 mount of this name, or its address or CA cannot be used.
 * - `unsupported`: vault; this server has no event stream.
 * - `refused`: the store refused the request as such (a wrong parameter, a failed login).
 * - `invalid_response`: it answered something that is not of its protocol.
 * - `insecure_files`: embedded; a file or its folder is open to others or belongs to somebody else.
 * - `corrupt`: embedded; the file, its key or a value cannot be read. Only a backup helps.
 */
export const SECRET_STORE_ERROR_CODES = [
  "denied",
  "unauthenticated",
  "not_found",
  "version_conflict",
  "bad_path",
  "too_large",
  "unsupported_number",
  "unsupported_text",
  "sealed",
  "unavailable",
  "aborted",
  "misconfigured",
  "unsupported",
  "refused",
  "invalid_response",
  "insecure_files",
  "corrupt",
] as const;
export type SecretStoreErrorCode = (typeof SECRET_STORE_ERROR_CODES)[number];

/** The one error that a {@link SecretStore} throws. Its message names paths and versions, never a value or token. */
export class SecretStoreError extends AppError<SecretStoreErrorCode> {}

/** What the store cannot answer now; the same call may succeed later. */
export function unavailable(
  message: string,
  options: Omit<AppErrorOptions, "remedy"> = {},
): SecretStoreError {
  return new SecretStoreError("unavailable", message, { ...options, remedy: "retry" });
}

/** A text that is not JSON (RFC 8259), has a duplicate key, or nests too deep. Tells the place, never the text. */
export class JsonError extends AppError<"invalid_json"> {
  /** 1-based; columns count UTF-16 code units. */
  readonly line: number;
  readonly column: number;

  constructor(problem: string, line: number, column: number) {
    super("invalid_json", `JSON, line ${line}, column ${column}: ${problem}`);
    this.line = line;
    this.column = column;
  }
}
