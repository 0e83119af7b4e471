import { stringMember } from "@devplat/base/json-member";
import { HttpClientError, boundedRequest, jsonOf } from "@devplat/http-client";
import { AgentError } from "../errors.ts";

/** One exchange, in milliseconds. */
const TIMEOUT_MS = 10_000;
/** Token responses have a few kilobytes. In bytes. */
const MAX_RESPONSE_BYTES = 256 * 1024;

export interface JsonResponse {
  readonly status: number;
  /** Members of the JSON object; empty if the response is not one. */
  readonly body: Readonly<Record<string, unknown>>;
}

export function postJson(url: string, value: unknown, signal: AbortSignal): Promise<JsonResponse> {
  return exchange(url, signal, {
    method: "POST",
    headers: { accept: "application/json", "content-type": "application/json" },
    body: JSON.stringify(value),
  });
}

export function getJson(url: string, signal: AbortSignal): Promise<JsonResponse> {
  return exchange(url, signal, { method: "GET", headers: { accept: "application/json" } });
}

async function exchange(
  url: string,
  signal: AbortSignal,
  options: {
    readonly method: "GET" | "POST";
    readonly headers: Record<string, string>;
    readonly body?: string;
  },
): Promise<JsonResponse> {
  const { host } = new URL(url);
  try {
    const limits = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_RESPONSE_BYTES, signal };
    const response = await boundedRequest(url, { ...options, ...limits, environment: process.env });
    return { status: response.status, body: objectOf(jsonOf(response)) };
  } catch (error) {
    throw lost(error, host);
  }
}

/** The error of a request without a response in an enrolment's words; any other is returned as it is. */
export function lost(error: unknown, host: string): unknown {
  if (!(error instanceof HttpClientError)) return error;
  if (error.code === "aborted") return new AgentError("enrolment_cancelled", "the enrolment was ended");
  if (error.code === "too_large") return failed(`${host} answers with ${error.message}`);
  const { message, hint, remedy } = error;
  return new AgentError("enrolment_failed", `${host} cannot be reached (${message})`, {
    remedy,
    ...(hint !== undefined && { hint }),
  });
}

/** An enrolment that did not work. */
export function failed(message: string, retry = false): AgentError {
  return new AgentError("enrolment_failed", message, retry ? { remedy: "retry" } : {});
}

/** An OAuth error code (RFC 6749 section 5.2) that may be shown: free text of a server is not passed on. */
export function errorCode(body: JsonResponse["body"]): string {
  const code = stringMember(body, "error");
  return code !== undefined && /^[a-z_]{1,40}$/.test(code) ? code : "no reason given";
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
