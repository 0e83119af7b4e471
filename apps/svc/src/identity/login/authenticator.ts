import type { Identity } from "../principal.ts";
import { hostCookieName, isOwnOrigin, readCookie } from "@devplat/web-kit";
import type { OwnAddress } from "../../own-address.ts";
import { presentedCredential } from "../../credentials/presented.ts";
import type { AllowedUsers } from "./allowed-users.ts";
import type { Sessions } from "./sessions.ts";

const SESSION_COOKIE = "svc_session";

/** The name of the cookie that holds a session's token. */
export function sessionCookieName({ isHttps }: Pick<OwnAddress, "isHttps">): string {
  return hostCookieName(SESSION_COOKIE, isHttps);
}

/** Headers of a management request that identify its sender. */
export interface RequestFacts {
  readonly method: string;
  readonly authorization: string | undefined;
  readonly cookie: string | undefined;
  readonly origin: string | undefined;
  readonly host: string | undefined;
}

/**
 * - `identity`: a known caller
 * - `nobody`: no credential, or an expired session (401)
 * - `refused`: a credential that is never taken here (403)
 */
export type Caller =
  | { readonly kind: "identity"; readonly identity: Identity }
  | { readonly kind: "nobody"; readonly message: string }
  | { readonly kind: "refused"; readonly message: string };

const SAFE_METHODS: readonly string[] = ["GET", "HEAD"];

/** Identifies the caller of a management request: by a bearer session token, else by the session cookie. */
export class Authenticator {
  readonly #sessions: Sessions;
  readonly #address: OwnAddress;
  readonly #allowed: Pick<AllowedUsers, "isStillAllowed">;

  constructor(sessions: Sessions, address: OwnAddress, allowed: Pick<AllowedUsers, "isStillAllowed">) {
    this.#sessions = sessions;
    this.#address = address;
    this.#allowed = allowed;
  }

  async identify(facts: RequestFacts): Promise<Caller> {
    const presented = presentedCredential(facts.authorization);
    if (presented.kind === "none") return this.#byCookie(facts);
    if (presented.kind !== "own") {
      return { kind: "nobody", message: "The credential is not a session or administration token" };
    }
    if (presented.tokenKind !== "session") {
      return { kind: "refused", message: "Proxy and agent tokens do not open the management interface" };
    }
    return this.#bySession(presented.token);
  }

  /** Whether a browser sent the request from a foreign page. A browser sends an Origin with each change. */
  isForeignPage(facts: RequestFacts): boolean {
    return facts.origin !== undefined && !isOwnOrigin(facts.origin, this.#address.origins(facts.host));
  }

  async #byCookie(facts: RequestFacts): Promise<Caller> {
    const token = readCookie(facts.cookie, sessionCookieName(this.#address));
    if (token === undefined)
      return { kind: "nobody", message: "A session or administration token is needed" };
    // A browser sends the cookie from every page. Only pages of this service may change something with it.
    const own = isOwnOrigin(facts.origin, this.#address.origins(facts.host));
    if (!SAFE_METHODS.includes(facts.method) && !own) {
      return {
        kind: "refused",
        message: `With a session cookie, changes are taken only from pages under ${this.#address.baseUrl}`,
      };
    }
    const caller = await this.#bySession(token);
    // A program has no browser: somebody copied its session into a cookie.
    return caller.kind === "identity" && caller.identity.device !== undefined
      ? { kind: "nobody", message: "The session of a program is not valid in a browser" }
      : caller;
  }

  async #bySession(token: string): Promise<Caller> {
    const identity = await this.#sessions.authenticate(token);
    if (identity === undefined) return { kind: "nobody", message: "The session is unknown or has ended" };
    return (await this.#allowed.isStillAllowed(identity))
      ? { kind: "identity", identity }
      : { kind: "nobody", message: "This account may not use the service any more; sign in again if it may" };
  }
}
