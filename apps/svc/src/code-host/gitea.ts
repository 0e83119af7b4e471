import { Secret } from "@devplat/base";
import type { CodeHost } from "./code-host.ts";
import { basicToken } from "./github.ts";

const API_PATH = "/api/v1";
/** Rights of a user's token, in Gitea's own words: git and pull requests, issues, and who the user is. */
const SCOPE = "write:repository write:issue read:organization read:user";

/**
 * Gitea and Forgejo: GitHub's OAuth paths, an API of their own, no GraphQL and no apps.
 *
 * @param url web and git address, without a final slash
 * @param apiUrl undefined: `/api/v1` under `url`
 */
export function gitea(url: string, apiUrl: string | undefined): CodeHost {
  return {
    kind: "gitea",
    url,
    apiUrl: apiUrl ?? url + API_PATH,
    graphqlUrl: undefined,
    uploadsUrl: undefined,
    oauth: {
      authorizeUrl: `${url}/login/oauth/authorize`,
      tokenUrl: `${url}/login/oauth/access_token`,
      scope: SCOPE,
      revokeUrl: () => undefined,
    },
    apps: undefined,
    gitAuthorization: basicToken,
    apiAuthorization: (token) => new Secret(`token ${token.reveal()}`),
  };
}
