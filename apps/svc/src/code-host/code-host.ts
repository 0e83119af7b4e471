import type { Secret } from "@devplat/base";

/** A user as the code host names it. */
export interface HostUser {
  /** The code host's own id: a login can be renamed and taken by another. */
  readonly id: string;
  readonly login: string;
}

/** What differs between code hosts; the rest of the service does not know which one it fronts (`host.kind`). */
export interface CodeHost {
  readonly kind: "github" | "gitea";
  /** Base address of the web and git side, without a final slash. */
  readonly url: string;
  /** Base address of REST, without a final slash. */
  readonly apiUrl: string;
  /** Address of GraphQL; undefined: the code host has none. */
  readonly graphqlUrl: string | undefined;
  /** Base address for uploads (release assets); undefined: it is the API's. */
  readonly uploadsUrl: string | undefined;
  readonly oauth: {
    readonly authorizeUrl: string;
    readonly tokenUrl: string;
    /** Scopes to ask for, space-separated. */
    readonly scope: string;
  };
  /** The `Authorization` under which git routes take the token. */
  gitAuthorization(token: Secret): Secret;
  /** The `Authorization` under which the API takes the token. */
  apiAuthorization(token: Secret): Secret;
}
