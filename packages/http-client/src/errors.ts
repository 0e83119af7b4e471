import { AppError } from "@devplat/base";

/**
 * - `proxy_misconfigured`: a variable does not hold the address of an HTTP proxy.
 * - `proxy_unavailable`: the proxy cannot be reached, or does not connect to the host.
 * - `unreachable`: the host cannot be reached, or does not speak HTTP. The message is the system's or the parser's code.
 * - `timeout`: there was no complete response in time.
 * - `too_large`: the response is larger than the caller takes.
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
