/** What a git request wants to do, in the terms of scopes. */
export interface GitAction {
  readonly owner: string;
  readonly name: string;
  readonly resource: "contents";
  readonly level: "read" | "write";
}

/** Who stands behind an admitted request, for the access log; never a secret. */
export interface Principal {
  readonly kind: "anonymous" | "foreign" | "proxy_token" | "agent_token";
  /** Login of the user whose credential is used, where it is known. */
  readonly login: string | undefined;
  readonly tokenId: string | undefined;
}

/**
 * - `forward`: send `authorization` upstream (undefined: none), as it stands.
 * - `refuse`: answer with this status; the body is text/plain because git prints nothing else.
 */
export type Admission =
  | {
      readonly kind: "forward";
      readonly authorization: string | undefined;
      readonly principal: Principal;
      /**
       * With a token of ours: the text/plain body of the 403 that stands for a 401 of the code host, which is about the
       * stored credential. Relayed as 401, it would make git forget a good token.
       */
      readonly whenUnauthorized?: string;
    }
  | {
      readonly kind: "refuse";
      readonly status: 401 | 403 | 429 | 503;
      readonly headers: Readonly<Record<string, string>>;
      readonly message: string;
    };

/**
 * Decides on the credential of one git request: one of our tokens is checked (kind, expiry, revocation, repository,
 * scope) and swapped for the stored credential; any other `Authorization` is forwarded as it stands; none stays none.
 *
 * Asked on every request, before anything else; a grant of the cache never replaces it. Fails closed: an action that
 * is not classified (undefined) is refused for our tokens.
 */
export interface CredentialGate {
  admit(
    authorization: string | undefined,
    action: GitAction | undefined,
    remoteAddress: string,
  ): Promise<Admission>;
  /** Whether a header or query value holds one of our token prefixes: such a request must not go upstream as it is. */
  carriesOwnToken(text: string): boolean;
}
