import type { Secret } from "@devplat/base";

/** A user's credential at the code host, as the login gave it. */
export interface HostCredential {
  readonly accessToken: Secret;
  /** Undefined: the access token does not expire, or cannot be renewed. */
  readonly refreshToken: Secret | undefined;
  /** Milliseconds since the Unix epoch; undefined: it does not expire. */
  readonly expiresAt: number | undefined;
}

/** The code-host accounts of users: their credentials, kept fresh. */
export interface HostAccounts {
  /**
   * The access token to use now; renewed before when it is about to expire, one renewal at a time per user over all
   * instances. Undefined: no account is connected, or it must be connected again.
   *
   * @throws SvcError `database_unavailable`, `encryption_key`
   */
  accessToken(userId: string): Promise<Secret | undefined>;
  /**
   * Renews an access token after the code host answered 401 to it, unless another request has already done so.
   *
   * @returns the token to try again with; undefined: there is none, the account must be connected again
   */
  renewAfterRefusal(userId: string, refused: Secret): Promise<Secret | undefined>;
}
