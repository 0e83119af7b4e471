import { request as requestHttp, type ClientRequest } from "node:http";
import { Agent, request as requestHttps, type AgentOptions } from "node:https";
import type { Duplex } from "node:stream";
import { isIPv6 } from "node:net";
import type { ConnectionOptions } from "node:tls";
import type { Proxy } from "./proxy-address.ts";
import { lostProxy, refusedByProxy } from "./proxy-fault.ts";

/** Time limit for a proxy to connect to a host, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;

/**
 * TLS connections through a proxy, by CONNECT (RFC 9110 section 9.3.6). Node's own agent also supports this, but its errors
 * do not separate faults of the proxy from faults of the host, and it waits for a proxy that does not speak HTTP.
 *
 * Requests fail with HttpClientError `proxy_unavailable` if the proxy cannot be reached or does not connect.
 */
export class TunnelAgent extends Agent {
  readonly #proxy: Proxy;
  readonly #connecting = new Set<ClientRequest>();

  /** @param options TLS and limits of the connections to hosts */
  constructor(proxy: Proxy, options: AgentOptions) {
    super(options);
    this.#proxy = proxy;
  }

  override createConnection(
    options: ConnectionOptions,
    callback: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    const { origin, authorization } = this.#proxy;
    const { host = "", port = 443 } = options;
    const authority = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
    const request = origin.startsWith("https:") ? requestHttps : requestHttp;
    const connecting = request(origin, {
      method: "CONNECT",
      path: authority,
      headers: {
        host: authority,
        ...(authorization !== undefined && { "proxy-authorization": authorization }),
      },
      agent: false,
      timeout: CONNECT_TIMEOUT_MS,
    });
    this.#connecting.add(connecting);
    // The agent's callback accepts an error alone, but its type does not.
    const fail = (error: Error): void => callback(error, undefined as never);
    connecting.once("close", () => this.#connecting.delete(connecting));
    connecting.once("timeout", () => connecting.destroy(Object.assign(new Error(), { code: "ETIMEDOUT" })));
    connecting.once("error", (error) => fail(lostProxy(this.#proxy, error)));
    connecting.once("connect", ({ statusCode = 0 }, socket) => {
      socket.setTimeout(0);
      const behind: ConnectionOptions = { ...options, socket };
      if (statusCode === 200) return callback(null, super.createConnection(behind) as Duplex);
      socket.destroy();
      fail(refusedByProxy(this.#proxy, statusCode));
    });
    connecting.end();
  }

  override destroy(): void {
    for (const each of this.#connecting) each.destroy();
    super.destroy();
  }
}
