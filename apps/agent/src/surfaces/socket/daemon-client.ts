import { boundedRequest, jsonOf, type HttpRequest, type HttpResponse } from "@devplat/http-client";
import { z } from "zod";
import { readWebAccess } from "../web/access/web-key.ts";
import { MAX_DAEMON_RESPONSE_BYTES, requestOverSocket } from "../../peers/socket-request.ts";

/** Responses come from memory immediately. A daemon that needs longer than this, in milliseconds, hangs. */
const RESPONSE_TIMEOUT_MS = 5000;
/** Status of a response without a body. */
const NO_CONTENT = 204;

export interface DaemonResponse {
  readonly status: number;
  /** Undefined for status 204. */
  readonly body: unknown;
}

/** A request that changes something. */
export interface DaemonChange {
  /** Default POST. */
  readonly method?: "POST" | "PATCH" | "DELETE";
  /** Sent as JSON. Default: none. */
  readonly body?: object;
  /** For the change itself, in milliseconds. */
  readonly timeoutMs?: number;
}

/** One way to the daemon. Rejects if no daemon responds. */
type Way = (
  path: string,
  request: Pick<HttpRequest, "method" | "headers" | "body" | "timeoutMs">,
) => Promise<DaemonResponse>;

const csrfSchema = z.object({ token: z.string() });

/** Sends requests of the command line to the user's running daemon: over its API socket, else over its web port. */
export class DaemonClient {
  readonly #ways: readonly Way[];

  /**
   * @param runtimeFolder where the daemon publishes the address and key of its web port
   * @param socketPath its API socket; none where it has none
   */
  constructor(runtimeFolder: string, socketPath: string | undefined) {
    const web = webWay(runtimeFolder);
    this.#ways = socketPath === undefined ? [web] : [socketWay(socketPath), web];
  }

  /** @returns undefined when no daemon answers */
  get(path: string): Promise<DaemonResponse | undefined> {
    return this.#first((way) => way(path, { timeoutMs: RESPONSE_TIMEOUT_MS }));
  }

  /**
   * A change, with the CSRF token that it needs. It is sent once, because a daemon that does not answer may have done it.
   * @returns undefined when no daemon answers
   */
  async change(
    path: string,
    { method = "POST", body, timeoutMs = RESPONSE_TIMEOUT_MS }: DaemonChange = {},
  ): Promise<DaemonResponse | undefined> {
    const found = await this.#first(async (way) => {
      const csrf = await way("/api/v1/csrf", { timeoutMs: RESPONSE_TIMEOUT_MS });
      return { way, token: csrfSchema.parse(csrf.body).token };
    });
    if (found === undefined) return undefined;
    const headers = {
      "x-csrf-token": found.token,
      ...(body !== undefined && { "content-type": "application/json" }),
    };
    const sent = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }), timeoutMs };
    return await found.way(path, sent).catch(() => undefined);
  }

  async #first<Found>(ask: (way: Way) => Promise<Found>): Promise<Found | undefined> {
    for (const way of this.#ways) {
      try {
        return await ask(way);
      } catch {
        // No daemon, or not this user's: the next way.
      }
    }
    return undefined;
  }
}

function socketWay(socketPath: string): Way {
  return async (path, request) => readResponse(await requestOverSocket({ ...request, socketPath, path }));
}

function webWay(runtimeFolder: string): Way {
  return async (path, request) => {
    const { url, key } = await readWebAccess(runtimeFolder);
    const headers = { authorization: `Bearer ${key.reveal()}`, ...request.headers };
    const maxBytes = MAX_DAEMON_RESPONSE_BYTES;
    return readResponse(await boundedRequest(url + path, { ...request, headers, maxBytes }));
  };
}

function readResponse(response: HttpResponse): DaemonResponse {
  const body = jsonOf(response);
  if (body === undefined && response.status !== NO_CONTENT) throw new Error("what answers is not a daemon");
  return { status: response.status, body };
}
