import { Secret } from "@devplat/base";
import type { CodeHost } from "./code-host.ts";

/** Where github.com has its API; elsewhere (Enterprise Server) it is under the web address. */
const CLOUD_URL = "https://github.com";
const CLOUD_API_URL = "https://api.github.com";
const CLOUD_UPLOADS_URL = "https://uploads.github.com";
const ENTERPRISE_API_PATH = "/api/v3";
/** Scopes that let the tokens of a classic OAuth app push, run workflows and see teams. Apps ignore them. */
const SCOPE = "repo workflow read:org";

/**
 * GitHub, cloud or Enterprise Server.
 *
 * @param url web and git address, without a final slash
 * @param apiUrl undefined: the one that belongs to `url`
 */
export function github(url: string, apiUrl: string | undefined): CodeHost {
  const api = apiUrl ?? (url === CLOUD_URL ? CLOUD_API_URL : url + ENTERPRISE_API_PATH);
  // Enterprise Server has its other interfaces next to REST: /api/v3, /api/graphql, /api/uploads.
  const beside = api.endsWith(ENTERPRISE_API_PATH) ? api.slice(0, -"/v3".length) : undefined;
  return {
    kind: "github",
    url,
    apiUrl: api,
    graphqlUrl: `${beside ?? api}/graphql`,
    uploadsUrl:
      beside !== undefined ? `${beside}/uploads` : api === CLOUD_API_URL ? CLOUD_UPLOADS_URL : undefined,
    oauth: {
      authorizeUrl: `${url}/login/oauth/authorize`,
      tokenUrl: `${url}/login/oauth/access_token`,
      scope: SCOPE,
      revokeUrl: (clientId) => `${api}/applications/${encodeURIComponent(clientId)}/token`,
    },
    apps: {
      registrationUrl: (owner) =>
        owner === undefined
          ? `${url}/settings/apps/new`
          : `${url}/organizations/${encodeURIComponent(owner)}/settings/apps/new`,
      installUrl: (slug) =>
        `${url}/${url === CLOUD_URL ? "apps" : "github-apps"}/${encodeURIComponent(slug)}/installations/new`,
    },
    gitAuthorization: basicToken,
    apiAuthorization: (token) => new Secret(`Bearer ${token.reveal()}`),
  };
}

/** Basic with the user name that stands for any token: user and installation tokens alike. */
export function basicToken(token: Secret): Secret {
  return new Secret(`Basic ${Buffer.from(`x-access-token:${token.reveal()}`).toString("base64")}`);
}
