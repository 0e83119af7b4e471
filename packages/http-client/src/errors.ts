import { AppError } from "@devplat/base";

/**
 * - `proxy_misconfigured`: the value of a variable is not the address of an HTTP proxy.
 * - `proxy_unavailable`: the proxy cannot be reached, or does not connect to the host.
 * - `unreachable`: the host cannot be reached, or does not speak HTTP. The message is the code of the system or of the parser.
 * - `timeout`: the response was not complete in time.
 * - `too_large`: the response is larger than the caller's limit.
 * - `aborted`: the caller's signal ended the request.
 */
export type HttpClientErrorCode =
  | "proxy_misconfigured"
  | "proxy_unavailable"
  | "unreachable"
  | "timeout"
  | "too_large"
  | "aborted";

/** Error of this package. It never quotes an address that may hold credentials. */
export class HttpClientError extends AppError<HttpClientErrorCode> {}
