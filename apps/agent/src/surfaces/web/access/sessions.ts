import { randomBytes } from "node:crypto";
import { systemClock, type Clock } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";

/** A link from `agent open` is good for this long, in milliseconds (spec/agent.md section 6). */
export const LINK_LIFETIME_MS = 30_000;
/** A session ends this long after it began, in milliseconds: a working day. */
export const SESSION_LIFETIME_MS = 12 * 60 * 60 * 1000;
/** Maximum number of each. The oldest is removed first. A user has a browser or two. */
const MAX_LINKS = 32;
const MAX_SESSIONS = 32;

export type Redemption =
  | { readonly outcome: "opened"; readonly session: string }
  /** The link was used before: another person has seen it. The session that it opened has been ended. */
  | { readonly outcome: "used" }
  | { readonly outcome: "invalid" };

interface Link {
  readonly expiresAt: number;
  session: string | undefined;
}

/** Browser sessions and the one-time links that open them. In memory: they end with the daemon. */
export class Sessions {
  readonly #clock: Clock;
  /** Used links stay until they are the oldest, so that a second use is noticed. */
  readonly #links = new BoundedMap<string, Link>({ max: MAX_LINKS });
  readonly #sessions: BoundedMap<string, true>;

  /** @param onEnd is called with each session that ends, by time or otherwise */
  constructor(onEnd: (session: string) => void, clock: Clock = systemClock) {
    this.#clock = clock;
    this.#sessions = new BoundedMap({
      max: MAX_SESSIONS,
      ttlMs: SESSION_LIFETIME_MS,
      now: () => clock.now(),
      onRemove: onEnd,
    });
  }

  /** A new one-time code, and when it ends (milliseconds since the epoch). */
  issueLink(): { code: string; expiresAt: number } {
    const code = randomBytes(32).toString("base64url");
    const expiresAt = this.#clock.now() + LINK_LIFETIME_MS;
    this.#links.set(code, { expiresAt, session: undefined });
    return { code, expiresAt };
  }

  redeem(code: string): Redemption {
    const link = this.#links.peek(code);
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
    link.session = randomBytes(32).toString("base64url");
    this.#sessions.set(link.session, true);
    return { outcome: "opened", session: link.session };
  }

  isOpen(session: string | undefined): boolean {
    if (session === undefined) return false;
    if (this.#sessions.peek(session) === true) return true;
    // It may have expired just now.
    this.endExpired();
    return false;
  }

  /** Ends the sessions whose time is over, so that their streams end too. */
  endExpired(): void {
    this.#sessions.purge();
  }

  endAll(): void {
    this.#sessions.clear();
  }

  end(session: string): void {
    this.#sessions.delete(session);
  }
}
