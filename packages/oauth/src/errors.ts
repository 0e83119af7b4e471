import { AppError } from "@devplat/base";

/**
 * - `refused`: the server answered with an OAuth error (RFC 6749 section 5.2); see {@link OauthError.reason}.
 * - `invalid_response`: the response is not one of OAuth.
 */
export type OauthErrorCode = "refused" | "invalid_response";

/** Never quotes a response: it may hold a token, or the text of anybody. */
export class OauthError extends AppError<OauthErrorCode> {
  /** The server's error code, as in `invalid_grant`, if it has the form of one. */
  readonly reason: string | undefined;
  /** Seconds between requests from now on, as GitHub tells with `slow_down`. */
  readonly interval: number | undefined;
  /** HTTP status of the response. */
  readonly status: number;

  constructor(
    code: OauthErrorCode,
    message: string,
    {
      reason,
      interval,
      status,
    }: { reason?: string | undefined; interval?: number | undefined; status: number },
  ) {
    super(code, message);
    this.reason = reason;
    this.interval = interval;
    this.status = status;
  }
}
