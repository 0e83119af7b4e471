import { once } from "node:events";
import { Agent, request as requestHttp, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import type { SecureContext, SecureContextOptions } from "node:tls";
import { systemCode } from "@devplat/base";
import { HttpClientError } from "./errors.ts";
import { findProxy } from "./find-proxy.ts";
import type { Proxy } from "./proxy-address.ts";
import { PROXY_AUTHENTICATION_REQUIRED, lostProxy, refusedByProxy } from "./proxy-fault.ts";
import type { Environment } from "./proxy-setting.ts";

export interface HttpClientOptions {
  /** Certificate authorities and client certificate for hosts. Default: Node's authorities, no client certificate. */
  readonly tls?: TlsSettings;
  /** Proxy for every host, including loopback. */
  readonly proxy?: Proxy;
  /** Source of `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, unless `proxy` is given. Default: no proxy. */
  readonly environment?: Environment;
  /** Milliseconds until an idle connection is closed. Default: each request has its own connection. */
  readonly idleMs?: number;
  /** Maximum connections to one origin, without tunnels that are being opened. Default: no limit. */
  readonly maxConnections?: number;
}

export interface TlsSettings extends SecureContextOptions {
  readonly secureContext?: SecureContext;
  /** With false, any certificate is accepted. */
  readonly rejectUnauthorized?: boolean;
}

export type HttpMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface HttpRequest {
  /** Default GET. */
  readonly method?: HttpMethod;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Time limit from connecting to the last byte, in milliseconds. */
  readonly timeoutMs: number;
  /** Maximum size of the response body, in bytes. With "head only", the body is not read and the connection is closed. */
  readonly maxBytes: number | "head only";
  readonly signal?: AbortSignal;
  /** A Unix socket to connect to, instead of the URL's host. */
  readonly socketPath?: string;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/**
 * Sends small requests with a time limit and a size limit. It uses node:http, because undici takes 80 ms to load, which
 * slows down each command, and 10 MB of a daemon's memory. It follows no redirect, and sends no request twice.
 */
export class HttpClient {
  readonly #options: HttpClientOptions;
  readonly #agents = new Map<string, Promise<Agent>>();

  constructor(options: HttpClientOptions = {}) {
    this.#options = options;
  }

  /**
   * Sends one request. Returns the response with any status.
   * @throws HttpClientError. Its message does not name the host and holds no credentials
   */
  async request(url: string | URL, request: HttpRequest): Promise<HttpResponse> {
    const { timeoutMs, maxBytes, signal } = request;
    const deadline = AbortSignal.timeout(timeoutMs);
    const ended = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
    try {
      const incoming = await this.#send(new URL(url), request, ended);
      const { statusCode: status = 0, headers } = incoming;
      if (maxBytes !== "head only") return { status, headers, body: await read(incoming, maxBytes) };
      incoming.on("error", () => undefined).destroy();
      return { status, headers, body: Buffer.alloc(0) };
    } catch (error) {
      if (signal?.aborted === true)
        throw new HttpClientError("aborted", "the request was ended", { cause: error });
      if (deadline.aborted)
        throw new HttpClientError("timeout", "no answer in time", { remedy: "retry", cause: error });
      if (error instanceof HttpClientError) throw error;
      const fault = systemCode(error) ?? "connection fault";
      throw new HttpClientError("unreachable", fault, { remedy: "retry", cause: error });
    }
  }

  /** Closes every connection; running requests fail. */
  async close(): Promise<void> {
    const agents = await Promise.all(this.#agents.values());
    for (const agent of agents) agent.destroy();
  }

  async #send(target: URL, request: HttpRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const { socketPath, method = "GET", body } = request;
    const proxy = socketPath === undefined ? await this.#proxyFor(target) : undefined;
    // Encrypted requests use a tunnel, which the agent opens.
    const relay = target.protocol === "http:" ? proxy : undefined;
    const { hostname, port, protocol } = relay === undefined ? target : new URL(relay.origin);
    const path = target.pathname + target.search;
    const outgoing = (protocol === "https:" ? await requestHttps() : requestHttp)({
      agent: await this.#agentFor(target, proxy),
      ...(socketPath === undefined
        ? { host: hostname.replace(/^\[|\]$/g, ""), port: port === "" ? undefined : port }
        : { socketPath }),
      method,
      path: relay === undefined ? path : target.origin + path,
      headers: {
        host: target.host,
        ...request.headers,
        ...(body !== undefined && { "content-length": Buffer.byteLength(body) }),
        ...(relay?.authorization !== undefined && { "proxy-authorization": relay.authorization }),
      },
      signal,
    });
    // A signal that has already fired ends the request before the wait for the response begins.
    outgoing.on("error", () => undefined);
    outgoing.end(body);
    // With the signal, because an aborted request that waits for its connection reports its end only after that.
    const incoming = await once(outgoing, "response", { signal }).then(
      ([first]) => first as IncomingMessage,
      (error: unknown) => {
        throw relay === undefined ? error : lostProxy(relay, error);
      },
    );
    if (relay === undefined || incoming.statusCode !== PROXY_AUTHENTICATION_REQUIRED) return incoming;
    incoming.destroy();
    throw refusedByProxy(relay, PROXY_AUTHENTICATION_REQUIRED);
  }

  async #proxyFor(target: URL): Promise<Proxy | undefined> {
    const { proxy, environment = {} } = this.#options;
    return proxy ?? (await findProxy(target, environment));
  }

  #agentFor(target: URL, proxy: Proxy | undefined): Promise<Agent> {
    const key = `${target.protocol} ${proxy?.origin}`;
    const kept = this.#agents.get(key) ?? this.#newAgent(target, proxy);
    this.#agents.set(key, kept);
    return kept;
  }

  async #newAgent(target: URL, proxy: Proxy | undefined): Promise<Agent> {
    const { tls, idleMs, maxConnections } = this.#options;
    const limits = {
      ...(idleMs !== undefined && { keepAlive: true, timeout: idleMs }),
      ...(maxConnections !== undefined && { maxSockets: maxConnections }),
    };
    const isSecure = target.protocol === "https:";
    if (!isSecure && !(proxy?.origin.startsWith("https:") === true)) return new Agent(limits);
    if (isSecure && proxy !== undefined) {
      const { TunnelAgent } = await import("./tunnel-agent.ts");
      return new TunnelAgent(proxy, { ...limits, ...tls });
    }
    const { Agent: SecureAgent } = await import("node:https");
    // Connections to a proxy use the authorities of the system.
    return new SecureAgent({ ...limits, ...(isSecure && tls) });
  }
}

/** Sends one request over its own connection. @throws HttpClientError, see {@link HttpClient.request} */
export async function boundedRequest(
  url: string | URL,
  request: HttpRequest & Pick<HttpClientOptions, "tls" | "proxy" | "environment">,
): Promise<HttpResponse> {
  const client = new HttpClient(request);
  try {
    return await client.request(url, request);
  } finally {
    await client.close();
  }
}

/** The JSON value of a body, or undefined if the body is not JSON. There is no error text, because it could quote the body. */
export function jsonOf({ body }: Pick<HttpResponse, "body">): unknown {
  try {
    return JSON.parse(body.toString("utf8")) as unknown;
  } catch {
    return undefined;
  }
}

/** Loaded on the first use, because many commands use only plain HTTP. */
async function requestHttps(): Promise<typeof requestHttp> {
  return (await import("node:https")).request;
}

async function read(incoming: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) throw new HttpClientError("too_large", `more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
