import { AppError, type Remedy } from "@devplat/base";

/**
 * Why a git request ends without the code host's response:
 * - `upstream_unreachable`: no connection, or it broke before a response came (502).
 * - `upstream_timeout`: the code host sent nothing for the idle time-out (504).
 * - `upstream_foreign`: the code host answered something that cannot be relayed (502).
 * - `body_too_large`: a command body is over the limit, inflated (413).
 * - `body_malformed`: broken gzip or broken framing (400).
 * - `body_too_slow`: the body stalled or never ended (408).
 * - `encoding_unsupported`: a `Content-Encoding` other than gzip (415).
 * - `busy`: a limit of this service is reached; try later (429, 503).
 * - `client_gone`: nobody reads the response any more.
 */
export type GitErrorCode =
  | "upstream_unreachable"
  | "upstream_timeout"
  | "upstream_foreign"
  | "body_too_large"
  | "body_malformed"
  | "body_too_slow"
  | "encoding_unsupported"
  | "busy"
  | "client_gone";

/** An error with the status that the client gets, if its response has not begun. The message is for the client. */
export class GitError extends AppError<GitErrorCode> {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: GitErrorCode,
    status: number,
    message: string,
    options: { headers?: Readonly<Record<string, string>>; remedy?: Remedy; cause?: unknown } = {},
  ) {
    super(code, message, { remedy: options.remedy ?? "retry", cause: options.cause });
    this.status = status;
    this.headers = options.headers ?? {};
  }
}

/** Whether a request ended because its client left. */
export function isGone(error: unknown): boolean {
  return error instanceof GitError && error.code === "client_gone";
}
