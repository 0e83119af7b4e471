import { randomBytes } from "node:crypto";
import { systemClock, type Clock } from "@devplat/base";

/** A link from `agent open` is good for this long, in milliseconds (spec/agent.md section 6). */
export const LINK_LIFETIME_MS = 30_000;
/** A session ends this long after it began, in milliseconds: a working day. */
export const SESSION_LIFETIME_MS = 12 * 60 * 60 * 1000;
/** At most this many of each; the oldest goes first. A user has a browser or two. */
const MAX_LINKS = 32;
const MAX_SESSIONS = 32;

export type Redemption =
  | { readonly outcome: "opened"; readonly session: string }
  /** The link was used before: somebody else has seen it. The session it opened has been ended. */
  | { readonly outcome: "used" }
  | { readonly outcome: "invalid" };

interface Link {
  readonly expiresAt: number;
  session: string | undefined;
}

/** Browser sessions and the one-time links that open them. In memory: they end with the daemon. */
export class Sessions {
  readonly #clock: Clock;
  readonly #onEnd: (session: string) => void;
  /** Used links stay until their session ends, so that a second use is noticed. Insertion order is age order. */
  readonly #links = new Map<string, Link>();
  readonly #sessions = new Map<string, number>();

  /** @param onEnd is called with each session that ends, by time or otherwise */
  constructor(onEnd: (session: string) => void, clock: Clock = systemClock) {
    this.#clock = clock;
    this.#onEnd = onEnd;
  }

  /** A new one-time code, and when it ends (milliseconds since the epoch). */
  issueLink(): { code: string; expiresAt: number } {
    dropOldest(this.#links, MAX_LINKS, (code) => this.#links.delete(code));
    const code = randomBytes(32).toString("base64url");
    const expiresAt = this.#clock.now() + LINK_LIFETIME_MS;
    this.#links.set(code, { expiresAt, session: undefined });
    return { code, expiresAt };
  }

  redeem(code: string): Redemption {
    const link = this.#links.get(code);
    if (link === undefined) return { outcome: "invalid" };
    if (link.session !== undefined) {
      this.#links.delete(code);
      this.end(link.session);
      return { outcome: "used" };
    }
    if (this.#clock.now() >= link.expiresAt) {
      this.#links.delete(code);
      return { outcome: "invalid" };
    }
    dropOldest(this.#sessions, MAX_SESSIONS, (session) => this.end(session));
    link.session = randomBytes(32).toString("base64url");
    this.#sessions.set(link.session, this.#clock.now() + SESSION_LIFETIME_MS);
    return { outcome: "opened", session: link.session };
  }

  isOpen(session: string | undefined): boolean {
    const expiresAt = session === undefined ? undefined : this.#sessions.get(session);
    if (session === undefined || expiresAt === undefined) return false;
    if (this.#clock.now() < expiresAt) return true;
    this.end(session);
    return false;
  }

  /** Ends the sessions whose time is over, so that their streams end too. */
  endExpired(): void {
    for (const session of this.#sessions.keys()) this.isOpen(session);
  }

  endAll(): void {
    for (const session of this.#sessions.keys()) this.end(session);
  }

  end(session: string): void {
    if (this.#sessions.delete(session)) this.#onEnd(session);
  }
}

function dropOldest(map: ReadonlyMap<string, unknown>, max: number, drop: (key: string) => void): void {
  for (const oldest of map.keys()) {
    if (map.size < max) return;
    drop(oldest);
  }
}
