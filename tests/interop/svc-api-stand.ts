import { startCodeHost, startSvc, tempFolder, type CodeHost, type Svc } from "@devplat/testkit";

export const STORED = "ghu_the-stored-credential";

/** The service in front of a code host with an API, and tokens by hand. */
export interface ApiStand {
  readonly codeHost: CodeHost;
  readonly svc: Svc;
  /** Where the same service listens on a unix socket, for programs that can be pointed at one. */
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
  const login = await fetch(`${svc.url}/auth/test-login`, {
    method: "POST",
    headers: json,
    body: JSON.stringify({ username: "alice", role: "admin", host_token: STORED }),
  });
  const { session_token: session } = (await login.json()) as { session_token: string };
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
    async mint(scopes, repositories = ["acme/widgets"]) {
      const answer = await fetch(`${svc.url}/api/tokens`, {
        method: "POST",
        headers: { ...json, authorization: `Bearer ${session}` },
        body: JSON.stringify({ repositories, scopes, duration: "1h" }),
      });
      const { token, detail } = (await answer.json()) as { token?: string; detail?: string };
      if (token === undefined) throw new Error(detail);
      return token;
    },
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
