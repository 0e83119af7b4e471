import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** A stub of a server with a device flow (RFC 8628), Databricks' token endpoint and the JFrog web login: it checks what it is sent, no more. */
export class TestOauthServer {
  readonly #server = createServer((incoming, outgoing) => void this.#answer(incoming, outgoing));
  url = "";
  /** Answers to the next requests for a token, before the last one is repeated. */
  tokenAnswers: { status?: number; body: Record<string, unknown> }[] = [];
  /** Every form or JSON body that came in, with its path. */
  readonly seen: { path: string; form: Record<string, string> }[] = [];
  /** The device endpoint in the RFC 8414 metadata. Default: its own. */
  announced: string | undefined;

  /** Members of the device answer that are not as usual. */
  deviceAnswer: Record<string, unknown> = {};

  async start(): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const path = incoming.url ?? "";
    const body = await text(incoming);
    const json = incoming.headers["content-type"] === "application/json";
    const form = json
      ? (JSON.parse(body) as Record<string, string>)
      : Object.fromEntries(new URLSearchParams(body));
    this.seen.push({ path, form });
    const reply = (status: number, value: unknown): void => {
      outgoing.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    };
    if (path === "/.well-known/oauth-authorization-server") {
      return reply(200, {
        device_authorization_endpoint: this.announced ?? `${this.url}/login/device/code`,
        token_endpoint: `${this.url}/login/oauth/access_token`,
      });
    }
    if (path === "/login/device/code") {
      return reply(200, {
        device_code: "the-device-code",
        user_code: "ABCD-1234",
        verification_uri: `${this.url}/login/device`,
        expires_in: 900,
        interval: 5,
        ...this.deviceAnswer,
      });
    }
    if (path.endsWith("/jfrog_client_login/request")) return reply(200, {});
    const isToken = path === "/login/oauth/access_token" || path === "/oidc/v1/token";
    if (isToken || path.includes("/jfrog_client_login/token/")) {
      const next = this.tokenAnswers.length > 1 ? this.tokenAnswers.shift() : this.tokenAnswers[0];
      return reply(next?.status ?? 200, next?.body ?? {});
    }
    reply(404, { error: "not_found" });
  }
}
