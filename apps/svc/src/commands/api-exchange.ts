import { HttpClientError, boundedRequest, type HttpMethod } from "@devplat/http-client";
import { SvcError } from "../errors.ts";
import { connectionFault } from "./connection-fault.ts";

/** Milliseconds for a complete response: of a long list, and through a proxy, which may take time to connect. */
const TIMEOUT_MS = 60_000;
/** An answer of the administration is never near this, in bytes. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

export type ApiMethod = HttpMethod;

export interface ApiResponse {
  readonly status: number;
  readonly text: string;
  readonly link: string | undefined;
}

/**
 * One request to a service, through the proxy that the environment names for it.
 *
 * @throws SvcError `server_unreachable`
 */
export async function exchange(
  url: URL,
  method: ApiMethod,
  content: string | undefined,
  headers: Readonly<Record<string, string>>,
): Promise<ApiResponse> {
  try {
    const response = await boundedRequest(url, {
      method,
      headers,
      ...(content !== undefined && { body: content }),
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_ANSWER_BYTES,
      environment: process.env,
    });
    // Node joins repeated headers of this name.
    const link = response.headers.link as string | undefined;
    return { status: response.status, text: response.body.toString("utf8"), link };
  } catch (error) {
    if (error instanceof HttpClientError) throw unreachable(url, error);
    throw error;
  }
}

function unreachable(url: URL, error: HttpClientError): SvcError {
  if (error.code === "too_large") {
    const message = `The answer of ${url.origin} is too large to be one of the service`;
    return new SvcError("server_unreachable", message, { cause: error });
  }
  const { found, hint } = connectionFault(error, url);
  return new SvcError("server_unreachable", `Cannot reach the service at ${url.origin}: ${found}`, {
    cause: error,
    hint,
  });
}
