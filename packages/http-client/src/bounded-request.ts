import { messageOf, systemCode } from "@devplat/base";
import { connectionsTo, refused } from "./connections.ts";
import { HttpClientError } from "./errors.ts";
import type { Environment } from "./proxy-setting.ts";
import { proxyFor } from "./proxy.ts";

export interface BoundedRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Certificate authorities in PEM form, instead of the system's. */
  readonly ca?: string;
  /** From connecting to the last byte, in milliseconds. */
  readonly timeoutMs: number;
  /** Largest body that is read, in bytes. */
  readonly maxBytes: number;
  readonly signal?: AbortSignal;
  /** Says which proxy to use; see {@link proxyFor}. */
  readonly environment: Environment;
}

export interface BoundedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

const PROXY_AUTHENTICATION_REQUIRED = 407;

/**
 * One request with a time limit and a size limit, over a connection of its own. Redirects are not followed.
 * @throws HttpClientError. Its message is about the way to the host; it does not name the host, and no credentials.
 */
export async function boundedRequest(url: string, request: BoundedRequest): Promise<BoundedAnswer> {
  const { origin, pathname, search, protocol } = new URL(url);
  const { method, headers, body, ca, timeoutMs, maxBytes, signal, environment } = request;
  const proxy = proxyFor(url, environment);
  const deadline = AbortSignal.timeout(timeoutMs);
  const connections = connectionsTo(origin, proxy, {
    connections: 1,
    connect: ca === undefined ? {} : { ca },
  });
  try {
    const response = await connections.request({
      origin,
      path: pathname + search,
      method,
      headers,
      signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
      ...(body !== undefined && { body }),
    });
    const { statusCode: status } = response;
    if (proxy !== undefined && protocol === "http:" && status === PROXY_AUTHENTICATION_REQUIRED) {
      throw refused(proxy, String(status));
    }
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxBytes) throw new HttpClientError("too_large", `more than ${maxBytes} bytes`);
      chunks.push(chunk);
    }
    return { status, headers: response.headers, body: Buffer.concat(chunks) };
  } catch (error) {
    if (error instanceof HttpClientError) throw error;
    if (signal?.aborted === true)
      throw new HttpClientError("aborted", "the request was ended", { cause: error });
    if (deadline.aborted) {
      throw new HttpClientError("timeout", "no answer in time", { remedy: "retry", cause: error });
    }
    // undici's words for a 407 to a request with a whole URL.
    if (proxy !== undefined && messageOf(error).startsWith("Proxy Authentication Required")) {
      throw refused(proxy, String(PROXY_AUTHENTICATION_REQUIRED), error);
    }
    const fault = systemCode(error) ?? "connection fault";
    throw new HttpClientError("unreachable", fault, { remedy: "retry", cause: error });
  } finally {
    await connections.destroy();
  }
}
