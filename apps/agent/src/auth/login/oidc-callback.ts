import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { bindLocalhost } from "@devplat/base";
import { AgentError } from "../../errors.ts";
import { respondToCallback } from "./callback-page.ts";

/** Vault CLI's own path: roles that were made for it work here too. */
const CALLBACK_PATH = "/oidc/callback";

/** Response of the identity provider, as the browser brings it back. */
export interface OidcCallback {
  readonly state: string;
  readonly code: string;
}

/** Waits on loopback for the browser to come back from the identity provider (RFC 8252 section 7.3). */
export class CallbackListener {
  readonly redirectUri: string;
  readonly #servers: readonly Server[];
  readonly #waiting = new Map<string, (answer: URLSearchParams) => void>();

  private constructor(port: number, servers: readonly Server[]) {
    this.redirectUri = `http://localhost:${port}${CALLBACK_PATH}`;
    this.#servers = servers;
    for (const server of servers)
      server.on("request", (request, response) => this.#answer(request, response));
  }

  /** @throws AgentError `login_refused` if another program has the port */
  static async open(port: number): Promise<CallbackListener> {
    const servers: Server[] = [];
    const bind = async (host: string): Promise<number> => {
      const server = createServer();
      try {
        server.listen(port, host);
        await once(server, "listening");
      } catch (error) {
        throw new AgentError("login_refused", `cannot wait for the browser on port ${port} of ${host}`, {
          cause: error,
          hint: "Another login may be under way; store.oidc_callback_port names another port.",
        });
      }
      servers.push(server);
      return port;
    };
    await bindLocalhost(port, bind, async () => {
      for (const server of servers) server.close();
    });
    return new CallbackListener(port, servers);
  }

  /**
   * Result of the login with this state.
   * @throws AgentError `login_failed` if the provider did not let the user in; the signal's reason
   */
  async expect(state: string, signal: AbortSignal): Promise<OidcCallback> {
    const { promise, resolve, reject } = Promise.withResolvers<URLSearchParams>();
    this.#waiting.set(state, resolve);
    const stop = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    try {
      const answer = await promise;
      const error = answer.get("error");
      if (error !== null) {
        // RFC 6749 section 4.1.2.1; the description is the provider's free text and is not passed on.
        const code = /^[a-z_]{1,40}$/.test(error) ? ` (${error})` : "";
        throw new AgentError("login_failed", `the identity provider did not let you in${code}`);
      }
      return { state, code: answer.get("code") ?? "" };
    } finally {
      this.#waiting.delete(state);
      signal.removeEventListener("abort", stop);
    }
  }

  close(): void {
    for (const server of this.#servers) {
      server.close();
      server.closeIdleConnections();
    }
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = URL.parse(request.url ?? "", "http://localhost");
    // A foreign name that resolves to loopback is not the address that we gave.
    const ours = /^(localhost|127\.0\.0\.1|\[::1\]):\d+$/.test(request.headers.host ?? "");
    if (url?.pathname !== CALLBACK_PATH || request.method !== "GET" || !ours) {
      return respondToCallback(response, 404, "Sign in", "There is nothing here.");
    }
    const deliver = this.#waiting.get(url.searchParams.get("state") ?? "");
    // Anybody on this host may knock here; what is not ours must not end the login that is.
    if (deliver === undefined)
      return respondToCallback(
        response,
        400,
        "Sign in",
        "This answer belongs to no login that is under way.",
      );
    deliver(url.searchParams);
    respondToCallback(response, 200, "Sign in", "You can close this page and go back to the terminal.");
  }
}
