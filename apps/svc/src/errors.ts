import { AppError, type AppErrorOptions } from "@devplat/base";
import { fieldPath } from "./field-path.ts";
import type { OperationProblemCode } from "./problem-types.ts";

/**
 * Every error of the service that users or other parts handle: the errors of operations, and these.
 * - `config_refused`: the configuration is well-formed, but the service must not start with it.
 * - `database_behind`: it lacks migrations that this program needs; `svc migrate` applies them.
 * - `database_ahead`: a newer version of the program migrated it.
 * - `database_not_empty`: a restore would delete what the database has.
 * - `database_in_use`: a restore would change the database below a running instance.
 * - `backup_refused`: a file is not a whole backup that this program can restore.
 * - `backup_locked`: the passphrase or identity does not open a backup.
 * - `backup_failed`: a backup cannot be written or read.
 * - `encryption_key`: the key is missing, or stored secrets were encrypted with another one.
 * - `listen_failed`: an address cannot be bound.
 * - `server_unreachable`: the command line got no response from the server.
 * - `server_refused`: the server answered the command line with an error.
 * - `usage`: the command line was used wrongly.
 */
export type SvcErrorCode =
  | OperationProblemCode
  | "config_refused"
  | "database_behind"
  | "database_ahead"
  | "database_not_empty"
  | "database_in_use"
  | "backup_refused"
  | "backup_locked"
  | "backup_failed"
  | "encryption_key"
  | "listen_failed"
  | "server_unreachable"
  | "server_refused"
  | "usage";

export class SvcError extends AppError<SvcErrorCode> {}

/** One wrong field of a request. */
export interface FieldFault {
  /** JSON Pointer (RFC 6901) into the request body: `/timeout_seconds`. */
  readonly pointer: string;
  /** Description of the fault, without the value. */
  readonly message: string;
}

/** Code `invalid_fields`. */
export class FieldError extends SvcError {
  readonly faults: readonly FieldFault[];

  constructor(faults: readonly FieldFault[], options: AppErrorOptions = {}) {
    super(
      "invalid_fields",
      faults.map(({ pointer, message }) => `${fieldPath(pointer)}: ${message}`).join("; "),
      options,
    );
    this.faults = faults;
  }
}
