import { startCodeHost, startSvc, tempFolder, type CodeHost, type Svc } from "@devplat/testkit";

export const STORED = "ghu_the-stored-credential";

/** The service in front of a code host with an API, and tokens by hand. */
export interface ApiStand {
  readonly codeHost: CodeHost;
  readonly svc: Svc;
  /** Token of the session of `alice`, who is an admin. */
  readonly session: string;
  /** Mints a proxy token. */
  mint(scopes: string, repositories?: readonly string[]): Promise<string>;
  /** Sends a request to the API under the service's path. */
  ask(token: string | undefined, method: string, path: string, options?: AskOptions): Promise<Response>;
  graphql(token: string, query: string, variables?: Record<string, unknown>): Promise<Response>;
  stop(): Promise<void>;
}

export interface AskOptions {
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
}

export async function startApiStand(env: Record<string, string> = {}): Promise<ApiStand> {
  const codeHost = await startCodeHost();
  await codeHost.addRepository("acme", "widgets", { private: true });
  await codeHost.addRepository("acme", "secret", { private: true });
  codeHost.addUser("alice", STORED);
  const folder = await tempFolder("svc-api");
  const svc = await startSvc({ codeHost, env: { SVC_CACHE_ENABLED: "false", ...env } });
  const json = { "content-type": "application/json" };
  const session = await svc.signIn({ username: "alice", role: "admin", host_token: STORED });
  const ask: ApiStand["ask"] = async (token, method, path, options = {}) =>
    fetch(svc.url + path, {
      method,
      redirect: "manual",
      headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...options.headers },
      ...(options.body === undefined ? {} : { body: options.body }),
    });
  return {
    codeHost,
    svc,
    session,
    mint: (scopes, repositories = ["acme/widgets"]) => svc.mintToken(session, { repositories, scopes }),
    ask,
    graphql: async (token, query, variables) =>
      ask(token, "POST", "/api/graphql", { headers: json, body: JSON.stringify({ query, variables }) }),
    async stop() {
      await svc.stop();
      await codeHost.stop();
      await folder.remove();
    },
  };
}
