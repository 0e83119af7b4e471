import { AppError } from "@devplat/base";

/**
 * - `refused`: the server sent an OAuth error (RFC 6749 section 5.2), see {@link OauthError.reason}.
 * - `invalid_response`: the response is not an OAuth response.
 */
export type OauthErrorCode = "refused" | "invalid_response";

/** Error of this package. It never quotes a response, which may hold a token or text of a stranger. */
export class OauthError extends AppError<OauthErrorCode> {
  /** Error code of the server, such as `invalid_grant`, if it has the form of an error code. */
  readonly reason: string | undefined;
  /** New interval between requests in seconds, which GitHub sends with `slow_down`. */
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
