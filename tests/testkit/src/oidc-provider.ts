import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Provider } from "oidc-provider";
import { TestkitError } from "./errors.ts";

/** A public client for programs on the user's host: any loopback port with the path /callback, PKCE, no secret. */
export const NATIVE_CLIENT_ID = "a-native-program";

/** A real OpenID provider on loopback with one confidential client, and {@link NATIVE_CLIENT_ID}. */
export interface OidcProvider {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /**
   * Does what a person does in a browser: visits the address, signs in under a name (any password is good), and
   * follows to the client's callback. Resolves with the status and text of the callback's page.
   * @param options `decline` gives up at the form; `callback` changes the address that the browser is sent back to
   */
  visit(
    url: string,
    name: string,
    options?: { readonly decline?: boolean; readonly callback?: (url: URL) => URL },
  ): Promise<{ readonly status: number; readonly text: string }>;
  stop(): Promise<void>;
}

export interface OidcProviderOptions {
  /**
   * Whether it replaces a code host's logins: GitHub's addresses, PKCE required, the client's secret in the form,
   * access tokens of an hour with refresh tokens that rotate, and `/api/v3/user`. Default false.
   */
  readonly asCodeHost?: boolean;
}

/** Lifetimes in seconds. The provider prints a notice for each kind that is left out. */
const TTL = {
  AccessToken: 3600,
  IdToken: 3600,
  RefreshToken: 86_400,
  Interaction: 3600,
  Session: 3600,
  Grant: 86_400,
};

/** More redirects than a login has. */
const MAX_STEPS = 20;

/** @param redirectUris where its client may be sent back to */
export async function startOidcProvider(
  redirectUris: readonly string[],
  { asCodeHost = false }: OidcProviderOptions = {},
): Promise<OidcProvider> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = { clientId: "the-store", clientSecret: "secret-of-the-store" };
  // Loaded here, as it takes 300 ms. It has notes on its development keys and forms, which are meant here.
  const { log, info, warn } = console;
  Object.assign(console, { log: () => {}, info: () => {}, warn: () => {} });
  try {
    const { Provider: OpenIdProvider } = await import("oidc-provider");
    const provider = new OpenIdProvider(issuer, {
      clients: [
        {
          client_id: client.clientId,
          client_secret: client.clientSecret,
          redirect_uris: [...redirectUris],
          application_type: "native",
          token_endpoint_auth_method: asCodeHost ? "client_secret_post" : "client_secret_basic",
          grant_types: ["authorization_code", "refresh_token"],
        },
        {
          client_id: NATIVE_CLIENT_ID,
          redirect_uris: ["http://127.0.0.1/callback"],
          application_type: "native",
          token_endpoint_auth_method: "none",
        },
      ],
      pkce: {
        required: (_context: unknown, { clientId }: { clientId: string }) =>
          asCodeHost || clientId === NATIVE_CLIENT_ID,
      },
      ttl: TTL,
      findAccount: (_context: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
      ...(asCodeHost ? CODE_HOST : {}),
    });
    const answer = provider.callback();
    server.on("request", (request, response) => {
      if (asCodeHost && request.url === "/api/v3/user") void tellUser(provider, request, response);
      else answer(request, response);
    });
  } finally {
    Object.assign(console, { log, info, warn });
  }
  return {
    issuer,
    ...client,
    visit: (url, name, options = {}) => visit(issuer, url, name, options),
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Settings that make it look like a code host. */
const CODE_HOST = {
  routes: { authorization: "/login/oauth/authorize", token: "/login/oauth/access_token" },
  scopes: ["openid", "offline_access", "repo", "workflow", "read:org"],
  issueRefreshToken: () => true,
  rotateRefreshToken: true,
};

/** Whose access token it is, in the code host's words. */
async function tellUser(
  provider: Provider,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const token = (request.headers.authorization ?? "").replace(/^Bearer /, "");
  const found = await provider.AccessToken.find(token);
  response.writeHead(found === undefined ? 401 : 200, { "content-type": "application/json" });
  response.end(JSON.stringify(found === undefined ? {} : { login: found.accountId, id: 7 }));
}

async function visit(
  issuer: string,
  start: string,
  name: string,
  options: { readonly decline?: boolean; readonly callback?: (url: URL) => URL },
): Promise<{ status: number; text: string }> {
  const cookies = new Map<string, string>();
  let url = new URL(start);
  let form: URLSearchParams | undefined;
  for (let step = 0; step < MAX_STEPS; step++) {
    if (url.origin !== issuer) {
      const response = await fetch(options.callback?.(url) ?? url);
      return { status: response.status, text: await response.text() };
    }
    const response = await fetch(url, {
      method: form === undefined ? "GET" : "POST",
      redirect: "manual",
      headers: { cookie: [...cookies].map(([key, value]) => `${key}=${value}`).join("; ") },
      ...(form === undefined ? {} : { body: form }),
    });
    for (const line of response.headers.getSetCookie()) {
      const [, key = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(key, value);
    }
    const text = await response.text();
    const location = response.headers.get("location");
    if (location !== null) {
      url = new URL(location, url);
      form = undefined;
    } else {
      const prompt = /name="prompt" value="(\w+)"/.exec(text)?.[1];
      if (prompt === undefined)
        throw new TestkitError("command_failed", `no form at ${url.pathname}: ${text.slice(0, 500)}`);
      if (options.decline === true) {
        url = new URL(`${url.pathname}/abort`, url);
        form = undefined;
      } else {
        form = new URLSearchParams({ prompt, login: name, password: "any" });
      }
    }
  }
  throw new TestkitError("command_failed", "the login did not come to an end");
}
