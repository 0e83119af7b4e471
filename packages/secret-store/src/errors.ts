import { AppError, type AppErrorOptions } from "@devplat/base";

/**
 * - `denied`: the token has no right to this path, until the token or its policies change.
 * - `unauthenticated`: there is no token, or it is no longer valid.
 * - `not_found`: the secret does not exist or was deleted.
 * - `version_conflict`: the compare-and-set version is not the stored version.
 * - `bad_path`: the path, user name, prefix or mount breaks the rules of paths.ts.
 * - `too_large`: the document is over MAX_DOCUMENT_BYTES, nested deeper than MAX_JSON_DEPTH, or over a limit of the
 *   server (nesting, entries, items, bytes). The hint then names the limit.
 * - `unsupported_number`: vault; the store would change the number.
 * - `unsupported_text`: vault; the store would change a text with half of a surrogate pair.
 * - `sealed`, `unavailable`: the store does not work now (remedy `retry`).
 * - `aborted`: the caller's signal fired.
 * - `misconfigured`: the store has no key-value version 2 mount of this name, or its address or CA cannot be used.
 * - `unsupported`: vault; this server has no event stream.
 * - `refused`: the store refused the request (a wrong parameter, a failed login).
 * - `invalid_response`: the response of the store does not follow its protocol.
 * - `insecure_files`: embedded; a file or its folder is open to others or belongs to another user.
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

/** The only error that a {@link SecretStore} throws. Its message names paths and versions, never a value or token. */
export class SecretStoreError extends AppError<SecretStoreErrorCode> {}

/** Error for a store that does not work now. The same call may succeed later. */
export function unavailable(
  message: string,
  options: Omit<AppErrorOptions, "remedy"> = {},
): SecretStoreError {
  return new SecretStoreError("unavailable", message, { ...options, remedy: "retry" });
}

/** Error for a text that is not JSON (RFC 8259), has a duplicate key, or is nested too deep. It has the place, never the text. */
export class JsonError extends AppError<"invalid_json"> {
  /** Line and column count from 1. Columns count UTF-16 code units. */
  readonly line: number;
  readonly column: number;

  constructor(problem: string, line: number, column: number) {
    super("invalid_json", `JSON, line ${line}, column ${column}: ${problem}`);
    this.line = line;
    this.column = column;
  }
}
