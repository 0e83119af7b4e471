import type { Clock, Logger, Secret } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import type { HostAccounts } from "../../code-host/host-account.ts";
import type { HostOauth } from "../../code-host/host-oauth.ts";
import { SvcError } from "../../errors.ts";

/** Milliseconds after which a refusal or a failed request is repeated. */
const ASK_AGAIN_MS = 60_000;
/** Maximum remembered users. The one that was used longest ago is forgotten first. */
const MAX_REMEMBERED = 10_000;

/** Who may use the service; both lists empty: everybody with an account of the code host. */
export interface AllowedLogins {
  readonly users: readonly string[];
  /** Organizations whose members may sign in. */
  readonly organizations: readonly string[];
}

/** A user as sessions and tokens know one. */
export interface KnownUser {
  readonly userId: string;
  readonly login: string;
}

export interface AllowedUsersParts {
  /** Undefined: no OAuth client is configured. */
  readonly oauth: Pick<HostOauth, "organizations"> | undefined;
  readonly accounts: Pick<HostAccounts, "accessToken">;
  readonly isAdmin: (login: string) => boolean;
  readonly allowed: AllowedLogins;
  /** Milliseconds that a confirmed membership is valid; undefined: memberships are checked only at logins. */
  readonly recheckMs: number | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface Membership {
  readonly allowed: boolean;
  readonly until: number;
}

/** Decides by `admins` and `login.allowed_*` who may use the service, at the login and at each use of a session or token. */
export class AllowedUsers {
  readonly #parts: AllowedUsersParts;
  #recheckMs: number | undefined;
  #users: ReadonlySet<string> = new Set();
  #organizations: ReadonlySet<string> = new Set();
  /** Memberships by user id, the oldest first. An expired one is still valid while the code host does not answer. */
  #memberships = new BoundedMap<string, Membership>({ max: MAX_REMEMBERED });
  readonly #asking = new Map<string, Promise<boolean>>();

  constructor(parts: AllowedUsersParts) {
    this.#parts = parts;
    this.#recheckMs = parts.recheckMs;
    this.setAllowed(parts.allowed);
  }

  /** Takes effect with the next request. @param recheckMs undefined: memberships are checked only at logins */
  setAllowed({ users, organizations }: AllowedLogins, recheckMs = this.#recheckMs): void {
    if (this.#recheckMs !== undefined) this.#recheckMs = recheckMs;
    this.#users = folded(users);
    this.#organizations = folded(organizations);
    this.#memberships = new BoundedMap({ max: MAX_REMEMBERED });
    this.#asking.clear();
  }

  /**
   * Checks a login. The organizations are requested from the code host only if they decide.
   *
   * @throws SvcError `login_refused`, `host_unreachable`
   */
  async mayLogIn(login: string, accessToken: Secret): Promise<boolean> {
    return this.#byName(login) ?? this.#isMember(accessToken);
  }

  /** Records an allowed login. It replaces an earlier refusal, and the next check does not ask the code host again. */
  confirm(userId: string): void {
    const until = this.#parts.clock.monotonic() + (this.#recheckMs ?? 0);
    this.#memberships.set(userId, { allowed: true, until });
  }

  /**
   * Checks a use of a session or token: the names always, memberships as often as configured, with the user's own
   * credential. While the code host does not answer, the last result stays. Without a credential no membership can be
   * checked, so the user must sign in again.
   */
  async isStillAllowed({ userId, login }: KnownUser): Promise<boolean> {
    const { clock } = this.#parts;
    const recheckMs = this.#recheckMs;
    if (recheckMs === undefined) return true;
    const byName = this.#byName(login);
    if (byName !== undefined) return byName;
    const known = this.#memberships.peek(userId);
    if (known !== undefined && clock.monotonic() < known.until) return known.allowed;
    const running = this.#asking.get(userId);
    if (running !== undefined) return running;
    const asking = this.#ask(userId, recheckMs).finally(() => {
      if (this.#asking.get(userId) === asking) this.#asking.delete(userId);
    });
    this.#asking.set(userId, asking);
    return asking;
  }

  /** Undefined: memberships decide. */
  #byName(login: string): boolean | undefined {
    const everybody = this.#users.size === 0 && this.#organizations.size === 0;
    if (everybody || this.#parts.isAdmin(login) || this.#users.has(login.toLowerCase())) return true;
    return this.#organizations.size === 0 ? false : undefined;
  }

  async #isMember(accessToken: Secret): Promise<boolean> {
    const wanted = this.#organizations;
    const theirs = (await this.#parts.oauth?.organizations(accessToken)) ?? [];
    return theirs.some((each) => wanted.has(each.toLowerCase()));
  }

  async #ask(userId: string, recheckMs: number): Promise<boolean> {
    const { accounts, clock, logger } = this.#parts;
    const memberships = this.#memberships;
    let allowed = false;
    let keptMs = ASK_AGAIN_MS;
    try {
      const accessToken = await accounts.accessToken(userId);
      if (accessToken !== undefined) allowed = await this.#isMember(accessToken);
      if (allowed) keptMs = recheckMs;
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      if (error.code !== "login_refused") {
        logger.warn({ err: error, user_id: userId }, "the memberships of a user could not be checked");
        allowed = memberships.peek(userId)?.allowed ?? true;
      }
    }
    // A result for other lists must not be remembered for these lists.
    if (memberships === this.#memberships)
      this.#memberships.set(userId, { allowed, until: clock.monotonic() + keptMs });
    return allowed;
  }
}

function folded(names: readonly string[]): ReadonlySet<string> {
  return new Set(names.map((name) => name.toLowerCase()));
}
