import { Secret, type Clock, type Logger } from "@devplat/base";
import { visible } from "@devplat/base/terminal";
import { jsonOf, type HttpResponse } from "@devplat/http-client";
import { basename } from "node:path";
import { z } from "zod";
import { AgentError } from "../errors.ts";
import { requestOverSocket } from "../peers/socket-request.ts";
import { findPeerSockets, type PeerSocket } from "../peers/peer-sockets.ts";
import type { PeerRefusal, TokenOffer } from "./sign-in.ts";

/** A live peer responds from memory. The slowest case is a forward over a slow line. In milliseconds. */
const RESPONSE_TIMEOUT_MS = 3000;
/** A socket without a listener is left behind by a broken connection; it is tried again after this. In milliseconds. */
const EVICTION_MS = 5 * 60_000;
/** Time for which a peer whose user is being asked for consent is asked often, and the interval, in milliseconds. */
const CONSENT_WAIT_MS = 40_000;
const CONSENT_RETRY_MS = 2000;
/** Maximum length of a peer's reason in a message, in characters. */
const MAX_REASON_LENGTH = 300;
/** Name of a socket that a managed forward makes: it contains the name of the workstation. */
const SOCKET_OF_WORKSTATION = /\.([A-Za-z0-9_-]+)\.sock$/;

const responseSchema = z.object({ token: z.string().min(1) });
const problemSchema = z.object({ code: z.string(), detail: z.string() });

export interface PeerPoolParts {
  /** `store.token_socket`: paths whose last segment may hold `*` and `?`. */
  readonly patterns: readonly string[];
  readonly home: string;
  /**
   * Called when a command begins to wait for the consent of a workstation's user. Undefined: the pool never waits, and
   * {@link PeerPool.retryInMs} says when to ask again.
   */
  readonly onWaiting: ((workstation: string) => void) | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

type PeerResponse =
  | { readonly kind: "lent"; readonly token: Secret }
  /** The user of the workstation is being asked. */
  | { readonly kind: "pending" }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "nothing" };

/** The sockets over which other daemons of this user (on the workstation in front of it) lend a token. */
export class PeerPool {
  readonly #parts: PeerPoolParts;
  /** Time of a peer's last response, on the monotonic clock. */
  readonly #respondedAt = new Map<string, number>();
  /** Until when a peer is left alone. */
  readonly #evicted = new Map<string, number>();
  /** Since when a peer's user is being asked for consent, on the monotonic clock. */
  readonly #pendingSince = new Map<string, number>();

  constructor(parts: PeerPoolParts) {
    this.#parts = parts;
  }

  /**
   * The peers' tokens, one at a time, the peer with the newest response first. They are not stored. Peers whose users are
   * being asked for consent come last.
   */
  async *borrow(signal: AbortSignal): AsyncGenerator<TokenOffer | PeerRefusal> {
    const { onWaiting } = this.#parts;
    let pending: readonly PeerSocket[] = [];
    for (const peer of await this.#peers()) {
      const response = await this.#ask(peer, signal);
      if (response.kind === "pending") pending = [...pending, peer];
      else yield* offersOf(peer, response);
    }
    if (onWaiting !== undefined) pending = yield* this.#awaitConsent(pending, onWaiting, signal);
    for (const peer of pending) {
      yield refusal(`waiting for consent on ${workstationOf(peer)}`, "Allow it there, then try again.");
    }
  }

  /** Asks peers again until their users have decided, for a limited time. @returns the peers that are still pending */
  async *#awaitConsent(
    peers: readonly PeerSocket[],
    onWaiting: (workstation: string) => void,
    signal: AbortSignal,
  ): AsyncGenerator<TokenOffer | PeerRefusal, readonly PeerSocket[]> {
    let pending = peers;
    const [first] = pending;
    if (first !== undefined && this.retryInMs() !== undefined) onWaiting(workstationOf(first));
    while (pending.length > 0 && this.retryInMs() !== undefined && !signal.aborted) {
      await this.#parts.clock.sleep(CONSENT_RETRY_MS, signal).catch(() => undefined);
      const still: PeerSocket[] = [];
      for (const peer of pending) {
        const response = await this.#ask(peer, signal);
        if (response.kind === "pending") still.push(peer);
        else yield* offersOf(peer, response);
      }
      pending = still;
    }
    return pending;
  }

  /** When to ask again, because a user decides about consent now; undefined if nobody does, or not within 40 s. */
  retryInMs(): number | undefined {
    const now = this.#parts.clock.monotonic();
    const asked = [...this.#pendingSince.values()].some((since) => now - since < CONSENT_WAIT_MS);
    return asked ? CONSENT_RETRY_MS : undefined;
  }

  async #ask(peer: PeerSocket, signal: AbortSignal): Promise<PeerResponse> {
    const { clock, logger } = this.#parts;
    try {
      const response = await requestOverSocket({
        socketPath: peer.path,
        path: "/api/v1/token",
        timeoutMs: RESPONSE_TIMEOUT_MS,
        signal,
      });
      this.#respondedAt.set(peer.key, clock.monotonic());
      const read = readResponse(response);
      if (read.kind !== "pending") this.#pendingSince.delete(peer.key);
      else if (!this.#pendingSince.has(peer.key)) {
        this.#pendingSince.set(peer.key, clock.monotonic());
        logger.info({ socket: peer.path }, "the user of the workstation is being asked for consent");
      }
      return read;
    } catch (error) {
      if (error instanceof z.ZodError) {
        logger.warn({ socket: peer.path }, "the program that answers on the socket is not a peer");
        return { kind: "nothing" };
      }
      // Given up by us: that says nothing about the peer.
      if (!signal.aborted) this.#evicted.set(peer.key, clock.monotonic() + EVICTION_MS);
      return { kind: "nothing" };
    }
  }

  async #peers(): Promise<PeerSocket[]> {
    const { patterns, home, clock } = this.#parts;
    const found = new Map((await findPeerSockets(patterns, home)).map((peer) => [peer.key, peer]));
    const now = clock.monotonic();
    for (const memory of [this.#respondedAt, this.#evicted, this.#pendingSince]) {
      for (const key of memory.keys()) if (!found.has(key)) memory.delete(key);
    }
    const lastResponse = (peer: PeerSocket): number => this.#respondedAt.get(peer.key) ?? 0;
    return [...found.values()]
      .filter(({ key }) => (this.#evicted.get(key) ?? 0) <= now)
      .toSorted((a, b) => lastResponse(b) - lastResponse(a) || b.modified - a.modified);
  }
}

/** @throws ZodError for a success that holds no token */
function readResponse(response: HttpResponse): PeerResponse {
  if (response.status === 200) {
    return { kind: "lent", token: new Secret(responseSchema.parse(jsonOf(response)).token) };
  }
  const problem = problemSchema.safeParse(jsonOf(response)).data;
  if (response.status === 503 && problem?.code === "consent_pending") return { kind: "pending" };
  if (response.status === 403 && problem?.code === "token_not_lendable") {
    return { kind: "refused", reason: visible(problem.detail.slice(0, MAX_REASON_LENGTH)) };
  }
  // One that is not signed in itself has none to lend, and stays a peer.
  return { kind: "nothing" };
}

function* offersOf(peer: PeerSocket, response: PeerResponse): Generator<TokenOffer | PeerRefusal> {
  if (response.kind === "lent") yield { token: response.token, borrowedFrom: peer.path };
  if (response.kind === "refused") yield refusal(`the peer at ${peer.path} responds: ${response.reason}`);
}

function refusal(message: string, hint?: string): PeerRefusal {
  return { refusal: new AgentError("token_not_lent", message, hint === undefined ? {} : { hint }) };
}

function workstationOf({ path }: PeerSocket): string {
  return SOCKET_OF_WORKSTATION.exec(basename(path))?.[1] ?? `the workstation behind ${path}`;
}
