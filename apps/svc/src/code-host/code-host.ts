import type { Secret } from "@devplat/base";

/** A user as the code host names it. */
export interface HostUser {
  /** The code host's own id: a login can be renamed and taken by another. */
  readonly id: string;
  readonly login: string;
}

/** The addresses of apps at the code host. */
export interface HostApps {
  /** Where a browser posts a manifest to. @param owner an organization; undefined: the user's own account */
  registrationUrl(owner: string | undefined): string;
  /** Where a person installs an app on repositories. */
  installUrl(slug: string): string;
}

/** Differences between code hosts. The rest of the service does not know which one it fronts (`host.kind`). */
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
    /**
     * Where a grant is given back when a user disconnects the account, authorised as the client; undefined: the code host
     * has no such place, and its own page has to do.
     */
    revokeUrl(clientId: string): string | undefined;
  };
  /** Where apps are registered (the app side of agent tokens); undefined: the code host knows no apps. */
  readonly apps: HostApps | undefined;
  /** The `Authorization` under which git routes take the token. */
  gitAuthorization(token: Secret): Secret;
  /** The `Authorization` under which the API takes the token. */
  apiAuthorization(token: Secret): Secret;
}
