import { AppError, type Remedy } from "@devplat/base";

/**
 * Reasons why a request of the API ends without the code host's response:
 * - `upstream_unreachable`: no connection, or it broke before a response came (502).
 * - `upstream_timeout`: the code host sent nothing for the idle time-out (504).
 * - `body_too_large`: a body that must be read completely is over the limit (413).
 * - `body_malformed`: the body has another form than the operation needs (400, 415).
 * - `body_too_slow`: it stalled (408).
 * - `busy`: too many large bodies are being checked (503).
 * - `client_gone`: the client does not read the response any more.
 */
export type ApiErrorCode =
  | "upstream_unreachable"
  | "upstream_timeout"
  | "body_too_large"
  | "body_malformed"
  | "body_too_slow"
  | "busy"
  | "client_gone";

/** An error with the status that the client gets, if its response has not begun. The message is for the client. */
export class ApiError extends AppError<ApiErrorCode> {
  readonly status: number;

  constructor(
    code: ApiErrorCode,
    status: number,
    message: string,
    options: { remedy?: Remedy; cause?: unknown } = {},
  ) {
    super(code, message, { remedy: options.remedy ?? "retry", cause: options.cause });
    this.status = status;
  }
}
