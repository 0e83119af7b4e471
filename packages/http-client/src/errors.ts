import { AppError } from "@devplat/base";

/**
 * - `proxy_misconfigured`: a variable does not hold the address of an HTTP proxy.
 * - `proxy_unavailable`: the proxy cannot be reached, or does not connect to the host.
 * - `unreachable`: the host cannot be reached.
 * - `timeout`: there was no whole answer in time.
 * - `too_large`: the answer is larger than the caller takes.
 * - `aborted`: the caller's signal ended the request.
 */
export type HttpClientErrorCode =
  | "proxy_misconfigured"
  | "proxy_unavailable"
  | "unreachable"
  | "timeout"
  | "too_large"
  | "aborted";

/** Never quotes an address that may hold credentials. */
export class HttpClientError extends AppError<HttpClientErrorCode> {}
