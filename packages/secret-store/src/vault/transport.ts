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
 * Largest answer that is read, in bytes. A document has at most 1 MiB, of which JSON escapes may make six times as
 * much; a listing of a hundred thousand names fits too.
 */
const MAX_RESPONSE_BYTES = 8 * 1024 * 1024;

export interface TransportOptions {
  /** Certificate authorities in PEM form, instead of the system's. */
  readonly caCert?: string;
  /** Default false. */
  readonly tlsSkipVerify?: boolean;
  /** Address of a forward proxy for every host, loopback included. */
  readonly proxy?: string;
  /** Where the variables for proxies are read from, if `proxy` is not given. Default: no proxy. */
  readonly environment?: Environment;
  /** Presented to a server that asks for it; PEM, or a key that OpenSSL finds by an engine. */
  readonly clientCertificate?: {
    readonly chain: string;
    readonly key: Secret | { readonly engine: string; readonly identifier: Secret };
  };
}

/** An answer, whatever its status. */
export interface TransportResponse {
  readonly status: number;
  readonly location: string | undefined;
  /** The header `Content-Type`. */
  readonly contentType: string | undefined;
  readonly text: string;
}

/**
 * An idle connection is closed after this, in milliseconds: well before servers and balancers close theirs (Vault: 5
 * minutes), so that no request meets a connection that is just ending.
 */
const IDLE_CONNECTION_MS = 4000;
/** Connections at once: more than callers bound themselves to (ten secrets at a time), few enough for any server. */
const MAX_CONNECTIONS = 64;

/** Faults before a byte of the request left this host. */
const UNSENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);
/** Faults of the certificate check (Node's tls), for which trying again is no use. */
const TLS_FAULT =
  /^(?:CERT_|ERR_TLS_|UNABLE_TO_|SELF_SIGNED_|ERR_OSSL_|DEPTH_ZERO_|ERR_SSL_|HOSTNAME_MISMATCH)/;

/** A request that got no answer. */
export class TransportError extends SecretStoreError {
  /** The server may have carried it out. */
  readonly uncertain: boolean;

  constructor(error: HttpClientError, target: string) {
    const isLate = error.code === "timeout" || error.code === "aborted";
    const fault = isLate ? "no answer in time" : error.message;
    const tls = error.code === "unreachable" && TLS_FAULT.test(fault);
    const hint = tls
      ? "If its certificate comes from an authority of your own, name that one in store.ca_cert."
      : error.hint;
    super(tls ? "misconfigured" : "unavailable", `cannot reach the store at ${target}: ${fault}`, {
      remedy: tls ? "final" : "retry",
      cause: error,
      ...(hint !== undefined && { hint }),
    });
    this.uncertain = !tls && !UNSENT.has(systemCode(error.cause) ?? "");
  }
}

/** Connections to the servers of one store, kept alive. */
export class Transport {
  readonly #options: TransportOptions;
  #http: HttpClient | undefined;
  readonly #streams = new Set<Dispatcher>();

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /**
   * One request, no retry, no redirect.
   * @param origin named in errors
   * @throws TransportError, or SecretStoreError: `invalid_response` for an answer that is too large,
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
      const found = `sent an answer of more than ${MAX_RESPONSE_BYTES} bytes`;
      throw new SecretStoreError("invalid_response", `the store at ${origin} ${found}`);
    }
  }

  /** See {@link socketMessages}. The server's reason for not opening it is not told: ask by {@link Transport.send}. */
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

/** Makes the connection of a WebSocket. Loaded for stores that have an event stream only. */
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
