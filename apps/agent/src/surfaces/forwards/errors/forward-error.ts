import { AppError, type AppErrorOptions } from "@devplat/base";

/**
 * - `file_invalid`: ssh.yaml is not valid, or cannot be edited without touching more than one entry.
 * - `host_exists`: ssh.yaml already has an entry for the host.
 * - `host_unknown`: ssh.yaml has no entry for the host.
 * - `ssh_unusable`: the ssh program is missing or too old.
 * - `configuration_refused`: a value of the user's ssh configuration cannot be used for a forward.
 * - `connection_failed`: a connection could not be made or has ended. See {@link ConnectionError}.
 * - `sftp_failed`: the server has not done a file operation.
 * - `token_not_lendable`: no store token can be lent to a remote host.
 * - `consent_pending`: the user is being asked whether a store token may be lent.
 */
export type ForwardErrorCode =
  | "file_invalid"
  | "host_exists"
  | "host_unknown"
  | "ssh_unusable"
  | "configuration_refused"
  | "connection_failed"
  | "sftp_failed"
  | "token_not_lendable"
  | "consent_pending";

/** Every error that managed SSH forwards raise themselves. */
export class ForwardError extends AppError<ForwardErrorCode> {}

/** A fault of ssh.yaml. The message names the line as well. */
export class RemotesFileError extends ForwardError {
  /** Counts from 1; 0 if the fault has no line. */
  readonly line: number;

  constructor(message: string, line: number, options: AppErrorOptions = {}) {
    super("file_invalid", message, options);
    this.line = line;
  }
}
