import { request as requestHttp, type IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";
import { messageOf, systemCode } from "@devplat/base";
import { SvcError } from "../errors.ts";

/** Milliseconds without a byte from the server. */
const IDLE_TIMEOUT_MS = 30_000;
/** An answer of the administration is never near this, in bytes. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const DEFAULT_URL = "http://localhost:8080";

/**
 * Calls the administration API of the service at `SVC_URL` with the token in `SVC_TOKEN`.
 * On node:http, because loading an HTTP client costs more time than the call.
 *
 * @returns the parsed answer; undefined where it has no body
 * @throws SvcError `usage` (no token), `server_unreachable`, `server_refused` with the server's own message
 */
export async function callApi(method: string, path: string, body?: unknown): Promise<unknown> {
  const base = serviceAddress();
  const token = process.env["SVC_TOKEN"] ?? "";
  if (!/^[\w.-]+$/.test(token)) {
    throw new SvcError("usage", "SVC_TOKEN is not set to a session or administration token", {
      hint: "In development mode, POST /auth/test-login gives one.",
    });
  }
  const content = body === undefined ? undefined : JSON.stringify(body);
  const { status, text } = await exchange(new URL(path, base), method, token, content);
  const parsed = parse(text);
  if (status >= 200 && status < 300) return parsed;
  const problem = (typeof parsed === "object" && parsed !== null ? parsed : {}) as {
    detail?: unknown;
    hint?: unknown;
  };
  const detail = typeof problem.detail === "string" ? problem.detail : "no reason was given";
  const message = `${base.host} answered ${status}: ${detail}`;
  throw new SvcError(
    "server_refused",
    message,
    typeof problem.hint === "string" ? { hint: problem.hint } : {},
  );
}

/** The service that the commands talk to: `SVC_URL`. @throws SvcError `usage` */
export function serviceAddress(): URL {
  const base = URL.parse(process.env["SVC_URL"] ?? DEFAULT_URL);
  if (base === null || !["http:", "https:"].includes(base.protocol)) {
    throw new SvcError("usage", "SVC_URL is not an http:// or https:// address");
  }
  return base;
}

async function exchange(
  url: URL,
  method: string,
  token: string,
  content: string | undefined,
): Promise<{ status: number; text: string }> {
  const request = url.protocol === "https:" ? requestHttps : requestHttp;
  const headers = {
    authorization: `Bearer ${token}`,
    ...(content === undefined
      ? {}
      : { "content-type": "application/json", "content-length": Buffer.byteLength(content) }),
  };
  try {
    return await new Promise((resolve, reject) => {
      const outgoing = request(
        url,
        { method, headers, timeout: IDLE_TIMEOUT_MS },
        (answer: IncomingMessage) => {
          const chunks: Buffer[] = [];
          let size = 0;
          answer.on("data", (chunk: Buffer) => {
            size += chunk.length;
            if (size > MAX_ANSWER_BYTES) answer.destroy(new Error("the answer is too large"));
            else chunks.push(chunk);
          });
          answer.on("error", reject);
          answer.on("end", () =>
            resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }),
          );
        },
      );
      outgoing.on("timeout", () => outgoing.destroy(new Error("no answer in time")));
      outgoing.on("error", reject);
      outgoing.end(content);
    });
  } catch (error) {
    const found = systemCode(error) === "ECONNREFUSED" ? "nothing listens there" : messageOf(error);
    throw new SvcError("server_unreachable", `Cannot reach the service at ${url.origin}: ${found}`, {
      cause: error,
      hint: "Start it with 'svc serve', or set SVC_URL to its address.",
    });
  }
}

function parse(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
