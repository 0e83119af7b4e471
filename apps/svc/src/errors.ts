import { AppError, type AppErrorOptions } from "@devplat/base";

/**
 * Every error of the service that a user or another part is meant to see:
 * - `config_refused`: the configuration is well-formed, but the service must not start with it.
 * - `database_unavailable`: the database cannot be opened or asked.
 * - `database_behind`: it lacks migrations that this program needs; `svc migrate` applies them.
 * - `database_ahead`: a newer program migrated it.
 * - `encryption_key`: the key is missing, or stored secrets were encrypted with another one.
 * - `listen_failed`: an address cannot be bound.
 * - `already_exists`: a record with the same natural key is there.
 * - `not_found`: no record has that id.
 * - `version_mismatch`: the record was changed since the caller read it.
 * - `invalid_fields`: fields of a request are wrong; {@link FieldError} names each.
 * - `forbidden`: the caller's role or kind of credential does not allow it.
 * - `no_app`: it needs a registered app, and none is.
 * - `cannot_warm`: a repository cannot be fetched ahead: it is disabled, or there is no token for it.
 * - `app_refused`: the code host does not take an app's key, or has no such app.
 * - `login_refused`: the code host does not take a login, or a refresh token.
 * - `login_misconfigured`: the code host does not take the OAuth client that is configured here.
 * - `too_many_requests`: a bound on tries was reached.
 * - `host_unreachable`: the code host gave no usable answer.
 * - `server_unreachable`: the command line got no answer from the server.
 * - `server_refused`: the server answered the command line with an error.
 * - `usage`: the command line was used wrongly.
 */
export type SvcErrorCode =
  | "config_refused"
  | "database_unavailable"
  | "database_behind"
  | "database_ahead"
  | "encryption_key"
  | "listen_failed"
  | "already_exists"
  | "not_found"
  | "version_mismatch"
  | "invalid_fields"
  | "forbidden"
  | "no_app"
  | "cannot_warm"
  | "app_refused"
  | "login_refused"
  | "login_misconfigured"
  | "too_many_requests"
  | "host_unreachable"
  | "server_unreachable"
  | "server_refused"
  | "usage";

export class SvcError extends AppError<SvcErrorCode> {}

/** One wrong field of a request. */
export interface FieldFault {
  /** JSON Pointer (RFC 6901) into the request body: `/timeout_seconds`. */
  readonly pointer: string;
  /** What is wrong, without quoting the value. */
  readonly message: string;
}

/** Code `invalid_fields`. */
export class FieldError extends SvcError {
  readonly faults: readonly FieldFault[];

  constructor(faults: readonly FieldFault[], options: AppErrorOptions = {}) {
    super(
      "invalid_fields",
      faults.map(({ pointer, message }) => `${pointer.slice(1).replaceAll("/", ".")}: ${message}`).join("; "),
      options,
    );
    this.faults = faults;
  }
}
