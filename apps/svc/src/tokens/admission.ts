import { BRAND } from "../brand.ts";
import type { Principal } from "../identity/principal.ts";
import type { RequiredPermissions, GitAction, TokenLimits } from "../scopes/required-permissions.ts";

export interface Forward {
  readonly kind: "forward";
  /** Sent upstream unchanged; undefined: none. */
  readonly authorization: string | undefined;
  readonly principal: Principal;
  /**
   * With a token of this service: the remedy if the code host refuses the stored credential. Its 401 becomes a 403 with this
   * text and the code host's own (refusal-words.ts). Relayed as 401, it would make git forget a valid token.
   */
  readonly whenUnauthorized?: string;
  /**
   * Renews the credential after a 401 of the code host, for one more try before the 401 is relayed.
   * Undefined result: there is no other credential.
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
 * - `forward`: send `authorization` upstream unchanged (undefined: none).
 * - `refuse`: respond with this status. The body is text/plain because git prints nothing else.
 */
export type Admission = Forward | Refusal;

/** The form in which the code host takes a credential. Its git side and its API differ. */
export type CredentialForm = "git" | "api";

/** A caller with a valid credential, before the permissions for the request are checked. */
export interface Caller {
  readonly kind: "caller";
  readonly principal: Principal;
  /** Limits of a token of this service; undefined: another credential, for which the code host alone decides. */
  readonly limits: TokenLimits | undefined;
  /** The refusal where permissions are missing. Unknown permissions (undefined) are always refused for tokens of this service. */
  permits(required: RequiredPermissions | undefined): Refusal | undefined;
  /** The credential for the code host. The caller must ask once per request, because it counts as a use. */
  forward(form: CredentialForm): Promise<Admission>;
}

/**
 * Decides on the credential of one request. A token of this service is checked (kind, expiry, revocation, address, rate,
 * repository, scope) and replaced by the stored credential. Any other `Authorization` is forwarded unchanged.
 *
 * It runs on every request, before anything else, and an authorization of the cache never replaces it. An action that is not
 * classified (undefined) is refused for tokens of this service.
 */
export interface CredentialCheck {
  /** For requests whose action follows from the head. */
  admit(
    authorization: string | undefined,
    action: GitAction | undefined,
    remoteAddress: string,
  ): Promise<Admission>;
  /** For requests whose action follows from the body, or from a request to the code host. */
  authenticate(authorization: string | undefined, remoteAddress: string): Promise<Caller | Refusal>;
  /** Whether a header or query value holds a token prefix of this service. Such a request must not go upstream unchanged. */
  carriesOwnToken(text: string): boolean;
  /**
   * The refusal of a foreign credential that is not in `Authorization`, for every caller.
   *
   * @param values of the query's parameters and of the headers that go to the code host; called only where they matter
   */
  foreignCredentialRefusal(values: () => readonly string[]): Refusal | undefined;
}

export function refuse(
  status: Refusal["status"],
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Refusal {
  return { kind: "refuse", status, headers, message };
}

/** 401, so that git asks its credential helpers again and drops the credential that they gave. */
export function unauthorized(message: string): Refusal {
  return refuse(401, message, { "WWW-Authenticate": `Basic realm="${BRAND.command}"` });
}
