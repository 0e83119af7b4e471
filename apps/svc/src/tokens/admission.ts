import type { Principal } from "../identity/principal.ts";
import type { Demand, GitAction, TokenLimits } from "../scopes/required-permissions.ts";

export interface Forward {
  readonly kind: "forward";
  /** Sent upstream as it stands; undefined: none. */
  readonly authorization: string | undefined;
  readonly principal: Principal;
  /**
   * With a token of ours: what to do if the code host does not take the stored credential. Its 401 becomes a 403 with this
   * and the code host's own words (refusal-words.ts); relayed as 401, it would make git forget a good token.
   */
  readonly whenUnauthorized?: string;
  /**
   * To be called after a 401 of the code host, before anything of it is relayed: what to try again with, once.
   * Undefined result: nothing better is there.
   */
  readonly renew?: () => Promise<string | undefined>;
}

export interface Refusal {
  readonly kind: "refuse";
  readonly status: 401 | 403 | 429 | 503;
  readonly headers: Readonly<Record<string, string>>;
  readonly message: string;
  /** Who was refused, where that is known. */
  readonly principal?: Principal;
}

/**
 * - `forward`: send `authorization` upstream (undefined: none), as it stands.
 * - `refuse`: answer with this status; the body is text/plain because git prints nothing else.
 */
export type Admission = Forward | Refusal;

/** In which form the code host takes a credential: its git side and its API differ. */
export type CredentialForm = "git" | "api";

/** Somebody whose credential is good, before it is known what they may do with it. */
export interface Caller {
  readonly kind: "caller";
  readonly principal: Principal;
  /** What a token of ours is limited to; undefined: no token of ours, the code host alone judges. */
  readonly limits: TokenLimits | undefined;
  /** What stands against the demand; undefined (nothing is known of what is asked): always a refusal for our tokens. */
  permits(demand: Demand | undefined): Refusal | undefined;
  /** The credential to go on with. To be asked once per request: it counts as a use. */
  forward(form: CredentialForm): Promise<Admission>;
}

/**
 * Decides on the credential of one request: one of our tokens is checked (kind, expiry, revocation, address, rate,
 * repository, scope) and swapped for the stored credential; any other `Authorization` is forwarded as it stands; none
 * stays none.
 *
 * Asked on every request, before anything else; a grant of the cache never replaces it. Fails closed: an action that
 * is not classified (undefined) is refused for our tokens.
 */
export interface CredentialGate {
  /** For requests that show in their head what they want. */
  admit(
    authorization: string | undefined,
    action: GitAction | undefined,
    remoteAddress: string,
  ): Promise<Admission>;
  /** For requests that show only in their body, or after a question to the code host, what they want. */
  authenticate(authorization: string | undefined, remoteAddress: string): Promise<Caller | Refusal>;
  /** Whether a header or query value holds one of our token prefixes: such a request must not go upstream as it is. */
  carriesOwnToken(text: string): boolean;
  /**
   * What stands against a credential of others beside `Authorization`, whoever sends the request.
   *
   * @param values of the query's parameters and of the headers that go to the code host; looked at only where they matter
   */
  strayFault(values: () => readonly string[]): Refusal | undefined;
}
