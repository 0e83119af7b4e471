import { systemCode, type Secret } from "@devplat/base";
import type { Dispatcher } from "undici";
import { BRAND } from "../brand.ts";
import { SvcError } from "../errors.ts";

/** Milliseconds for a whole exchange: somebody waits in front of a page, or a git client does. */
const TIMEOUT_MS = 10_000;
/** Answers of logins and apps have a few kilobytes; a page of installations has tens. In bytes. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

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
  readonly #dispatcher: ((url: URL) => Promise<Dispatcher>) | undefined;
  readonly #timeoutMs: number;

  /**
   * @param dispatcher the connections to use; undefined: plain ones
   * @param timeoutMs for a whole exchange
   */
  constructor(dispatcher?: (url: URL) => Promise<Dispatcher>, timeoutMs = TIMEOUT_MS) {
    this.#dispatcher = dispatcher;
    this.#timeoutMs = timeoutMs;
  }

  /** @throws SvcError `host_unreachable`: no answer in time, or one that is too large; the status is the caller's to judge */
  async ask(
    method: "GET" | "POST" | "DELETE",
    url: string,
    question: HostQuestion = {},
  ): Promise<HostAnswer> {
    const target = new URL(url);
    // Loaded when first needed: it costs start-up time that most processes never get back.
    const { request } = await import("undici");
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
      const dispatcher = await this.#dispatcher?.(target);
      const { statusCode, body } = await request(target, {
        method,
        headers,
        body: sent ?? null,
        signal: AbortSignal.timeout(this.#timeoutMs),
        ...(dispatcher === undefined ? {} : { dispatcher }),
      });
      const chunks: Buffer[] = [];
      let size = 0;
      for await (const chunk of body as AsyncIterable<Buffer>) {
        size += chunk.length;
        if (size > MAX_ANSWER_BYTES) throw unreachable(target, "its answer is too large");
        chunks.push(chunk);
      }
      return { status: statusCode, body: parsed(Buffer.concat(chunks).toString("utf8")) };
    } catch (error) {
      if (error instanceof SvcError) throw error;
      const timedOut = error instanceof Error && error.name === "TimeoutError";
      throw unreachable(target, timedOut ? "no answer in time" : (systemCode(error) ?? "no answer"), error);
    }
  }
}

/** An answer that is of no use: the code host's own fault, or something else stands at its address. */
export function unreachable(url: URL, reason: string, cause?: unknown): SvcError {
  return new SvcError("host_unreachable", `The code host ${url.host} could not be asked: ${reason}`, {
    remedy: "retry",
    cause,
    hint: "Try again shortly.",
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // What is no JSON is not quoted: it may be anybody's.
    return undefined;
  }
}
