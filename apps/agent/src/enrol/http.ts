import { textOf } from "@devplat/base/json-member";
import { HttpClientError, boundedRequest, jsonOf } from "@devplat/http-client";
import { AgentError } from "../errors.ts";

/** One exchange, in milliseconds. */
const TIMEOUT_MS = 10_000;
/** Token answers have a few kilobytes; in bytes. */
const MAX_ANSWER_BYTES = 256 * 1024;

export interface Answer {
  readonly status: number;
  /** Members of the JSON object; empty if the answer is none. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** Posts a form (RFC 6749 appendix B) and reads a JSON object. @throws AgentError `enrolment_failed` */
export function postForm(
  url: string,
  form: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Answer> {
  return exchange(url, signal, {
    method: "POST",
    headers: { accept: "application/json", "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams(form).toString(),
  });
}

export function postJson(url: string, value: unknown, signal: AbortSignal): Promise<Answer> {
  return exchange(url, signal, {
    method: "POST",
    headers: { accept: "application/json", "content-type": "application/json" },
    body: JSON.stringify(value),
  });
}

export function getJson(url: string, signal: AbortSignal): Promise<Answer> {
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
): Promise<Answer> {
  const { host } = new URL(url);
  try {
    const limits = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_ANSWER_BYTES, signal };
    const response = await boundedRequest(url, { ...options, ...limits, environment: process.env });
    return { status: response.status, body: objectOf(jsonOf(response)) };
  } catch (error) {
    if (!(error instanceof HttpClientError)) throw error;
    if (error.code === "aborted") throw new AgentError("enrolment_cancelled", "the enrolment was ended");
    if (error.code === "too_large") throw failed(`${host} answers with ${error.message}`);
    const { message, hint, remedy } = error;
    throw new AgentError("enrolment_failed", `${host} cannot be reached (${message})`, {
      remedy,
      ...(hint !== undefined && { hint }),
    });
  }
}

/** An enrolment that did not work. */
export function failed(message: string, retry = false): AgentError {
  return new AgentError("enrolment_failed", message, retry ? { remedy: "retry" } : {});
}

/** Seconds that a server may speak of: some thirty years, so that a time made of them is one. */
const MAX_SECONDS = 1e9;

/** A number of seconds, or the fallback; some servers send it as text. More than {@link MAX_SECONDS} is cut to that. */
export function secondsOf(body: Answer["body"], name: string, fallback: number): number {
  const value = Number(body[name] ?? fallback);
  return value >= 0 ? Math.min(value, MAX_SECONDS) : fallback;
}

/** An OAuth error code (RFC 6749 section 5.2) that may be shown: free text of a server is not passed on. */
export function errorCode(body: Answer["body"]): string {
  const code = textOf(body, "error");
  return code !== undefined && /^[a-z_]{1,40}$/.test(code) ? code : "no reason given";
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
