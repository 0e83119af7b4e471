import type { Secret } from "@devplat/base";
import { HttpClient, HttpClientError, jsonOf } from "@devplat/http-client";
import { BRAND } from "../brand.ts";
import { SvcError } from "../errors.ts";

/** Milliseconds for a whole exchange: somebody waits in front of a page, or a git client does. */
const TIMEOUT_MS = 10_000;
/** Answers of logins and apps have a few kilobytes; a page of installations has tens. In bytes. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;

export interface HostAnswer {
  readonly status: number;
  /** The JSON answer; undefined: it is none. */
  readonly body: unknown;
}

export interface HostQuestion {
  readonly authorization?: Secret | undefined;
  /** At most one of the two. */
  readonly form?: Readonly<Record<string, string>>;
  readonly json?: unknown;
}

/** Small JSON exchanges with the code host for the service's own ends: logins, accounts, apps. Redirects are not followed. */
export class HostClient {
  readonly http: HttpClient;
  readonly timeoutMs: number;

  /**
   * @param http default: without a proxy, and each request over a connection of its own
   * @param timeoutMs for a whole exchange
   */
  constructor(http: HttpClient = new HttpClient(), timeoutMs = TIMEOUT_MS) {
    this.http = http;
    this.timeoutMs = timeoutMs;
  }

  /** @throws SvcError `host_unreachable`: no answer in time, or one that is too large; the status is the caller's to judge */
  async ask(
    method: "GET" | "POST" | "DELETE",
    url: string,
    question: HostQuestion = {},
  ): Promise<HostAnswer> {
    const target = new URL(url);
    const headers: Record<string, string> = { "user-agent": BRAND.command, accept: "application/json" };
    if (question.authorization !== undefined) headers["authorization"] = question.authorization.reveal();
    let sent: string | undefined;
    if (question.form !== undefined) {
      sent = new URLSearchParams(question.form).toString();
      headers["content-type"] = "application/x-www-form-urlencoded";
    } else if (question.json !== undefined) {
      sent = JSON.stringify(question.json);
      headers["content-type"] = "application/json";
    }
    try {
      const response = await this.http.request(target, {
        method,
        headers,
        ...(sent !== undefined && { body: sent }),
        timeoutMs: this.timeoutMs,
        maxBytes: MAX_RESPONSE_BYTES,
      });
      return { status: response.status, body: jsonOf(response) };
    } catch (error) {
      if (!(error instanceof HttpClientError)) throw error;
      throw lostHost(target, error);
    }
  }
}

/**
 * The error for a code host that gave no response. A proxy's address is not for callers: they are told the code alone, and
 * who runs the service finds the cause in the log.
 */
export function lostHost(url: URL, error: HttpClientError): SvcError {
  const { code, message } = error;
  const isProxy = code === "proxy_unavailable" || code === "proxy_misconfigured";
  return unreachable(url, code === "too_large" ? "its answer is too large" : isProxy ? code : message, error);
}

/** The error for a useless response: the code host has a fault, or another program is at its address. */
export function unreachable(url: URL, reason: string, cause?: unknown): SvcError {
  return new SvcError("host_unreachable", `The code host ${url.host} could not be asked: ${reason}`, {
    remedy: "retry",
    cause,
    hint: "Try again shortly.",
  });
}
