import { Secret, systemCode } from "@devplat/base";
import {
  HttpClient,
  HttpClientError,
  readProxy,
  type Environment,
  type HttpClientOptions,
  type HttpMethod,
  type HttpRequest,
  type TlsSettings,
} from "@devplat/http-client";
import type { Dispatcher } from "undici";
import { SecretStoreError } from "../errors.ts";
import { socketMessages } from "./event-socket.ts";

/**
 * Maximum size of a response, in bytes. A document has up to 1 MiB, which JSON escapes may make six times as
 * long. A list of a hundred thousand names also fits.
 */
const MAX_RESPONSE_BYTES = 8 * 1024 * 1024;

export interface TransportOptions {
  /** Certificate authorities in PEM form, instead of the system's. */
  readonly caCert?: string;
  /** Default false. */
  readonly tlsSkipVerify?: boolean;
  /** Address of a forward proxy for every host, including loopback. */
  readonly proxy?: string;
  /** Source of the proxy variables, unless `proxy` is given. Default: no proxy. */
  readonly environment?: Environment;
  /** Client certificate for a server that requests one: PEM, or a key that OpenSSL finds by an engine. */
  readonly clientCertificate?: {
    readonly chain: string;
    readonly key: Secret | { readonly engine: string; readonly identifier: Secret };
  };
}

/** A response with any status. */
export interface TransportResponse {
  readonly status: number;
  readonly location: string | undefined;
  /** The header `Content-Type`. */
  readonly contentType: string | undefined;
  readonly text: string;
}

/**
 * Time until an idle connection is closed, in milliseconds. It is shorter than the time of servers and load balancers
 * (Vault: 5 minutes), so that no request uses a connection that the peer is closing.
 */
const IDLE_CONNECTION_MS = 4000;
/** Maximum connections: more than callers need (ten secrets at a time), few enough for any server. */
const MAX_CONNECTIONS = 64;

/** Codes of faults before the first byte of the request was sent. */
const UNSENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);
/** Faults of the certificate check (Node's tls). A retry cannot succeed. */
const TLS_FAULT =
  /^(?:CERT_|ERR_TLS_|UNABLE_TO_|SELF_SIGNED_|ERR_OSSL_|DEPTH_ZERO_|ERR_SSL_|HOSTNAME_MISMATCH)/;

/** Error for a request without a response. */
export class TransportError extends SecretStoreError {
  /** Whether the server may have carried out the request. */
  readonly uncertain: boolean;

  constructor(error: HttpClientError, target: string) {
    const isLate = error.code === "timeout" || error.code === "aborted";
    const fault = isLate ? "no answer in time" : error.message;
    const tls = error.code === "unreachable" && TLS_FAULT.test(fault);
    const hint = tls
      ? "If its certificate is from a private authority, set store.ca_cert to that authority."
      : error.hint;
    super(tls ? "misconfigured" : "unavailable", `cannot reach the store at ${target}: ${fault}`, {
      remedy: tls ? "final" : "retry",
      cause: error,
      ...(hint !== undefined && { hint }),
    });
    this.uncertain = !tls && !UNSENT.has(systemCode(error.cause) ?? "");
  }
}

/** Persistent connections to the servers of one store. */
export class Transport {
  readonly #options: TransportOptions;
  #http: HttpClient | undefined;
  readonly #streams = new Set<Dispatcher>();

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /**
   * Sends one request, without retry and redirect.
   * @param origin origin of the server, also for errors
   * @throws TransportError, or SecretStoreError: `invalid_response` for a response that is too large,
   *   `misconfigured`
   */
  async send(
    method: HttpMethod,
    url: string,
    origin: string,
    request: Pick<HttpRequest, "headers" | "body" | "timeoutMs" | "signal">,
  ): Promise<TransportResponse> {
    try {
      this.#http ??= httpClient(this.#options);
      const limits = { maxBytes: MAX_RESPONSE_BYTES };
      const { status, headers, body } = await this.#http.request(url, { method, ...request, ...limits });
      const { location, "content-type": contentType } = headers;
      return { status, location, contentType, text: body.toString("utf8") };
    } catch (error) {
      if (!(error instanceof HttpClientError)) throw error;
      if (error.code === "proxy_misconfigured") throw wrongProxy(error);
      if (error.code !== "too_large") throw new TransportError(error, origin);
      const found = `sent a response of more than ${MAX_RESPONSE_BYTES} bytes`;
      throw new SecretStoreError("invalid_response", `the store at ${origin} ${found}`);
    }
  }

  /** See {@link socketMessages}. Its error has no reason of the server. {@link Transport.send} can find the reason. */
  async *messages(
    url: string,
    headers: Record<string, string>,
    signal: AbortSignal,
    opened: () => void,
  ): AsyncGenerator<string> {
    const dispatcher = await streamDispatcher(url, this.#options);
    this.#streams.add(dispatcher);
    try {
      yield* socketMessages(url, headers, dispatcher, signal, opened);
    } finally {
      this.#streams.delete(dispatcher);
      await dispatcher.destroy();
    }
  }

  async close(): Promise<void> {
    await this.#http?.close();
    for (const each of this.#streams) await each.destroy();
  }
}

/** @throws HttpClientError `proxy_misconfigured` */
function httpClient(options: TransportOptions): HttpClient {
  return new HttpClient({
    ...reachOf(options),
    idleMs: IDLE_CONNECTION_MS,
    maxConnections: MAX_CONNECTIONS,
  });
}

/** @throws HttpClientError `proxy_misconfigured` */
function reachOf(options: TransportOptions): Pick<HttpClientOptions, "tls" | "proxy" | "environment"> {
  const { proxy, environment } = options;
  return {
    tls: tlsOf(options),
    ...(proxy !== undefined && proxy !== "" && { proxy: readProxy("store.proxy", proxy) }),
    ...(environment !== undefined && { environment }),
  };
}

function wrongProxy({ message, hint }: HttpClientError): SecretStoreError {
  return new SecretStoreError("misconfigured", message, hint === undefined ? {} : { hint });
}

function tlsOf({ caCert, tlsSkipVerify, clientCertificate }: TransportOptions): TlsSettings {
  return {
    ...(caCert !== undefined && { ca: caCert }),
    ...(tlsSkipVerify === true && { rejectUnauthorized: false }),
    ...(clientCertificate !== undefined && {
      cert: clientCertificate.chain,
      ...keyOf(clientCertificate.key),
    }),
  };
}

function keyOf(key: NonNullable<TransportOptions["clientCertificate"]>["key"]) {
  if (key instanceof Secret) return { key: key.reveal() };
  return { privateKeyEngine: key.engine, privateKeyIdentifier: key.identifier.reveal() };
}

/** Makes the dispatcher of a WebSocket. It is loaded only for stores with an event stream. */
async function streamDispatcher(url: string, options: TransportOptions): Promise<Dispatcher> {
  const [{ connectionsTo }, { proxyFor }] = await Promise.all([
    import("@devplat/http-client/connections"),
    import("@devplat/http-client/proxy"),
  ]);
  const { tls = {}, proxy, environment = {} } = reachOf(options);
  return connectionsTo(new URL(url).origin, proxy ?? proxyFor(url, environment), {
    connect: tls,
    tunnelsHttp: true,
  });
}
