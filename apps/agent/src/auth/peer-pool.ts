import { Secret, type Clock, type Logger } from "@devplat/base";
import { jsonOf } from "@devplat/http-client";
import { z } from "zod";
import { requestOverSocket } from "../peers/socket-request.ts";
import { findPeerSockets, type PeerSocket } from "../peers/peer-sockets.ts";
import type { TokenOffer } from "./sign-in.ts";

/** A live peer responds from memory. The slowest case is a forward over a slow line. In milliseconds. */
const RESPONSE_TIMEOUT_MS = 3000;
/** A socket without a listener is left behind by a broken connection; it is tried again after this. In milliseconds. */
const EVICTION_MS = 5 * 60_000;

const responseSchema = z.object({ token: z.string().min(1) });

export interface PeerPoolParts {
  /** `store.token_socket`: paths whose last segment may hold `*` and `?`. */
  readonly patterns: readonly string[];
  readonly home: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The sockets over which other daemons of this user (on the workstation in front of it) lend their token. */
export class PeerPool {
  readonly #parts: PeerPoolParts;
  /** Time of a peer's last response, on the monotonic clock. */
  readonly #respondedAt = new Map<string, number>();
  /** Until when a peer is left alone. */
  readonly #evicted = new Map<string, number>();

  constructor(parts: PeerPoolParts) {
    this.#parts = parts;
  }

  /** The peers' tokens, one at a time, the peer with the newest response first. They are not stored. */
  async *borrow(signal: AbortSignal): AsyncGenerator<TokenOffer> {
    for (const peer of await this.#peers()) {
      const token = await this.#ask(peer, signal);
      if (token !== undefined) yield { token, borrowedFrom: peer.path };
    }
  }

  async #ask(peer: PeerSocket, signal: AbortSignal): Promise<Secret | undefined> {
    const { clock, logger } = this.#parts;
    try {
      const response = await requestOverSocket({
        socketPath: peer.path,
        path: "/api/v1/token",
        timeoutMs: RESPONSE_TIMEOUT_MS,
        signal,
      });
      this.#respondedAt.set(peer.key, clock.monotonic());
      // One that is not signed in itself has none to lend, and stays a peer.
      return response.status === 200 ? new Secret(responseSchema.parse(jsonOf(response)).token) : undefined;
    } catch (error) {
      if (error instanceof z.ZodError) {
        logger.warn({ socket: peer.path }, "the program that answers on the socket is not a peer");
        return undefined;
      }
      // Given up by us: that says nothing about the peer.
      if (!signal.aborted) this.#evicted.set(peer.key, clock.monotonic() + EVICTION_MS);
      return undefined;
    }
  }

  async #peers(): Promise<PeerSocket[]> {
    const { patterns, home, clock } = this.#parts;
    const found = new Map((await findPeerSockets(patterns, home)).map((peer) => [peer.key, peer]));
    const now = clock.monotonic();
    for (const memory of [this.#respondedAt, this.#evicted]) {
      for (const key of memory.keys()) if (!found.has(key)) memory.delete(key);
    }
    const lastResponse = (peer: PeerSocket): number => this.#respondedAt.get(peer.key) ?? 0;
    return [...found.values()]
      .filter(({ key }) => (this.#evicted.get(key) ?? 0) <= now)
      .toSorted((a, b) => lastResponse(b) - lastResponse(a) || b.modified - a.modified);
  }
}
