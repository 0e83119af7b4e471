import { boundedRequest, type HttpRequest, type HttpResponse } from "@devplat/http-client";

/** A token, a status or an action's outcome has a few kilobytes. In bytes. */
export const MAX_DAEMON_RESPONSE_BYTES = 1024 * 1024;

export interface SocketRequest extends Omit<HttpRequest, "maxBytes"> {
  readonly socketPath: string;
  /** Path and query. */
  readonly path: string;
}

/** One request to a daemon's Unix socket. @throws HttpClientError `unreachable` where no daemon answers, `timeout`, … */
export function requestOverSocket({ path, ...request }: SocketRequest): Promise<HttpResponse> {
  return boundedRequest(`http://localhost${path}`, { ...request, maxBytes: MAX_DAEMON_RESPONSE_BYTES });
}
