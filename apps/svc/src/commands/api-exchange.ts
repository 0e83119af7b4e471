import { request as requestHttp, type IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";
import { proxySetting } from "@devplat/http-client/proxy-setting";
import { SvcError } from "../errors.ts";
import { connectionFault } from "./connection-fault.ts";

/** Milliseconds without a byte from the server. */
const IDLE_TIMEOUT_MS = 30_000;
/** Milliseconds for a whole answer through a proxy, which may take time to connect. */
const PROXIED_TIMEOUT_MS = 60_000;
/** An answer of the administration is never near this, in bytes. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

export type ApiMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface ApiResponse {
  readonly status: number;
  readonly text: string;
  readonly link: string | undefined;
}

/**
 * One request to a service, through the proxy that the environment names for it. Without one it is sent by node:http,
 * because loading an HTTP client costs more time than the call.
 *
 * @throws SvcError `server_unreachable`
 */
export async function exchange(
  url: URL,
  method: ApiMethod,
  content: string | undefined,
  headers: Readonly<Record<string, string>>,
): Promise<ApiResponse> {
  const send = proxySetting(url, process.env) === undefined ? direct : proxied;
  try {
    return await send(url, method, content, headers);
  } catch (error) {
    if (error instanceof SvcError) throw error;
    throw unreachable(url, connectionFault(error, url), error);
  }
}

function direct(
  url: URL,
  method: ApiMethod,
  content: string | undefined,
  more: Readonly<Record<string, string>>,
): Promise<ApiResponse> {
  const request = url.protocol === "https:" ? requestHttps : requestHttp;
  const headers = {
    ...more,
    ...(content === undefined ? {} : { "content-length": Buffer.byteLength(content) }),
  };
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      { method, headers, timeout: IDLE_TIMEOUT_MS },
      (answer: IncomingMessage) => {
        const chunks: Buffer[] = [];
        let size = 0;
        answer.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size > MAX_ANSWER_BYTES) answer.destroy(tooLarge(url));
          else chunks.push(chunk);
        });
        answer.on("error", reject);
        answer.on("end", () =>
          resolve({
            status: answer.statusCode ?? 0,
            text: Buffer.concat(chunks).toString("utf8"),
            link: answer.headers.link as string | undefined,
          }),
        );
      },
    );
    outgoing.on("timeout", () => outgoing.destroy(new Error("no answer in time")));
    outgoing.on("error", reject);
    outgoing.end(content);
  });
}

/** Direct as well, if `NO_PROXY` names the host. */
async function proxied(
  url: URL,
  method: ApiMethod,
  content: string | undefined,
  headers: Readonly<Record<string, string>>,
): Promise<ApiResponse> {
  const { HttpClientError, boundedRequest } = await import("@devplat/http-client");
  try {
    const answer = await boundedRequest(url.href, {
      method,
      headers,
      ...(content !== undefined && { body: content }),
      timeoutMs: PROXIED_TIMEOUT_MS,
      maxBytes: MAX_ANSWER_BYTES,
      environment: process.env,
    });
    const { link } = answer.headers;
    return {
      status: answer.status,
      text: answer.body.toString("utf8"),
      link: Array.isArray(link) ? link.join(", ") : link,
    };
  } catch (error) {
    if (!(error instanceof HttpClientError)) throw error;
    if (error.code === "too_large") throw tooLarge(url);
    if (error.code === "proxy_unavailable" || error.code === "proxy_misconfigured")
      throw unreachable(url, { found: error.message, hint: error.hint ?? "" }, error);
    throw error.cause;
  }
}

function unreachable(url: URL, { found, hint }: { found: string; hint: string }, cause: unknown): SvcError {
  return new SvcError("server_unreachable", `Cannot reach the service at ${url.origin}: ${found}`, {
    cause,
    hint,
  });
}

function tooLarge(url: URL): SvcError {
  return new SvcError(
    "server_unreachable",
    `The answer of ${url.origin} is too large to be one of the service`,
  );
}
