import type { Logger } from "@devplat/base";
import { requestOverSocket } from "../../peers/socket-request.ts";
import { actionFields, actionForm, actionPath, type PeerAction } from "./action.ts";
import { findPeerSockets, type PeerSocket } from "../../peers/peer-sockets.ts";

/** A peer works for up to 8 s (spec/agent.md section 6); its response then crosses a slow line. In milliseconds. */
const RESPONSE_TIMEOUT_MS = 10_000;
/** Time for the other peers after one has accepted, in milliseconds. A forward without its far end hangs. */
const REST_TIMEOUT_MS = 3000;

export interface PeerFanOutParts {
  /** `store.token_socket`. */
  readonly patterns: readonly string[];
  readonly home: string;
  readonly logger: Logger;
  /** Default REST_TIMEOUT_MS. */
  readonly restTimeoutMs?: number;
}

/** Asks all live peers concurrently to do an action on their desktops. */
export class PeerFanOut {
  readonly #parts: PeerFanOutParts;

  constructor(parts: PeerFanOutParts) {
    this.#parts = parts;
  }

  /** The sockets that would get a request, live or not. */
  async sockets(): Promise<readonly string[]> {
    const { patterns, home } = this.#parts;
    return (await findPeerSockets(patterns, home)).map(({ path }) => path);
  }

  /** @returns how many peers have accepted. Only 2xx accepts: a 4xx or 5xx response, or none, does not. */
  async send(action: PeerAction, signal: AbortSignal = new AbortController().signal): Promise<number> {
    const { patterns, home, restTimeoutMs = REST_TIMEOUT_MS } = this.#parts;
    const peers = await findPeerSockets(patterns, home);
    const rest = new AbortController();
    const ended = AbortSignal.any([signal, rest.signal]);
    let timer: NodeJS.Timeout | undefined;
    const asked = peers.map(async (peer) => {
      const accepted = await this.#ask(peer, action, ended);
      if (accepted) timer ??= setTimeout(() => rest.abort(), restTimeoutMs);
      return accepted;
    });
    const responses = await Promise.all(asked);
    clearTimeout(timer);
    return responses.filter(Boolean).length;
  }

  async #ask(peer: PeerSocket, action: PeerAction, signal: AbortSignal): Promise<boolean> {
    const { logger } = this.#parts;
    const fields = { ...actionFields(action), socket: peer.path };
    try {
      const { status } = await requestOverSocket({
        socketPath: peer.path,
        method: "POST",
        path: actionPath(action.kind),
        headers: { "content-type": "application/x-www-form-urlencoded" },
        body: actionForm(action),
        timeoutMs: RESPONSE_TIMEOUT_MS,
        signal,
      });
      const accepted = status >= 200 && status < 300;
      logger.debug({ ...fields, status }, accepted ? "peer accepted" : "peer did not accept");
      return accepted;
    } catch {
      // Left behind by a connection that broke, or hanging.
      logger.debug(fields, "peer does not answer");
      return false;
    }
  }
}
