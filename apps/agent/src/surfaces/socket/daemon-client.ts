import { boundedRequest, jsonOf, type HttpResponse } from "@devplat/http-client";
import { z } from "zod";
import { readWebAccess } from "../web/access/web-key.ts";
import { MAX_DAEMON_RESPONSE_BYTES, requestOverSocket } from "../../peers/socket-request.ts";

/** Responses come from memory immediately. A daemon that needs longer than this, in milliseconds, hangs. */
const RESPONSE_TIMEOUT_MS = 5000;

export interface DaemonResponse {
  readonly status: number;
  readonly body: unknown;
}

/** One way to the daemon. Rejects if no daemon responds. */
type Way = (
  method: "GET" | "POST",
  path: string,
  headers: Readonly<Record<string, string>>,
  timeoutMs: number,
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
    return this.#first((way) => way("GET", path, {}, RESPONSE_TIMEOUT_MS));
  }

  /**
   * A change, with the CSRF token that it needs.
   * @param timeoutMs for the change itself, in milliseconds
   * @returns undefined when no daemon answers
   */
  post(path: string, timeoutMs: number = RESPONSE_TIMEOUT_MS): Promise<DaemonResponse | undefined> {
    return this.#first(async (way) => {
      const { body } = await way("GET", "/api/v1/csrf", {}, RESPONSE_TIMEOUT_MS);
      const { token } = csrfSchema.parse(body);
      return await way("POST", path, { "x-csrf-token": token }, timeoutMs);
    });
  }

  async #first(ask: (way: Way) => Promise<DaemonResponse>): Promise<DaemonResponse | undefined> {
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
  return async (method, path, headers, timeoutMs) =>
    readResponse(await requestOverSocket({ socketPath, method, path, headers, timeoutMs }));
}

function webWay(runtimeFolder: string): Way {
  return async (method, path, more, timeoutMs) => {
    const { url, key } = await readWebAccess(runtimeFolder);
    const headers = { authorization: `Bearer ${key.reveal()}`, ...more };
    return readResponse(
      await boundedRequest(url + path, { method, headers, timeoutMs, maxBytes: MAX_DAEMON_RESPONSE_BYTES }),
    );
  };
}

function readResponse(response: HttpResponse): DaemonResponse {
  const body = jsonOf(response);
  if (body === undefined) throw new Error("what answers is not a daemon");
  return { status: response.status, body };
}
