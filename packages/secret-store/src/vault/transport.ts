import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { Secret, systemCode } from "@devplat/base";
import type { Dispatcher } from "undici";
import { SecretStoreError } from "../errors.ts";
import type { ProxySettings } from "./address.ts";
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
  readonly proxy?: ProxySettings;
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

  constructor(fault: string, target: string, cause: unknown) {
    const tls = TLS_FAULT.test(fault);
    super(tls ? "misconfigured" : "unavailable", `cannot reach the store at ${target}: ${fault}`, {
      remedy: tls ? "final" : "retry",
      cause,
      ...(tls && {
        hint: "If its certificate comes from an authority of your own, name that one in store.ca_cert.",
      }),
    });
    this.uncertain = !tls && !UNSENT.has(fault);
  }
}

/** Connections to the servers of one store, kept alive. */
export class Transport {
  readonly #options: TransportOptions;
  #connections: Connections | undefined;
  #dispatcher: Promise<Dispatcher> | undefined;

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
    method: string,
    url: string,
    origin: string,
    headers: Record<string, string>,
    body: string | undefined,
    signal: AbortSignal,
  ): Promise<TransportResponse> {
    try {
      const answer = await this.#exchange(method, url, headers, body, signal);
      const text = await textOf(answer);
      if (text === undefined) {
        throw new SecretStoreError(
          "invalid_response",
          `the store at ${origin} sent an answer of more than ${MAX_RESPONSE_BYTES} bytes`,
        );
      }
      const { location, "content-type": contentType } = answer.headers;
      return { status: answer.statusCode ?? 0, location, contentType, text };
    } catch (error) {
      if (error instanceof SecretStoreError) throw error;
      const code = systemCode(error);
      const fault = signal.aborted ? "no answer in time" : (code ?? "connection fault");
      throw new TransportError(fault, origin, error);
    }
  }

  async #exchange(
    method: string,
    url: string,
    headers: Record<string, string>,
    body: string | undefined,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    this.#connections ??= connections(this.#options);
    const { http, https } = this.#connections;
    return new Promise((resolve, reject) => {
      const outgoing = url.startsWith("https:")
        ? httpsRequest(url, { agent: https, method, headers, signal })
        : httpRequest(url, { agent: http, method, headers, signal });
      outgoing.once("response", resolve);
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  }

  /** See {@link socketMessages}. The server's reason for not opening it is not told: ask by {@link Transport.send}. */
  async *messages(
    url: string,
    headers: Record<string, string>,
    signal: AbortSignal,
    opened: () => void,
  ): AsyncGenerator<string> {
    this.#dispatcher ??= socketDispatcher(this.#options);
    yield* socketMessages(url, headers, await this.#dispatcher, signal, opened);
  }

  async close(): Promise<void> {
    this.#connections?.http.destroy();
    this.#connections?.https.destroy();
    const dispatcher = await this.#dispatcher?.catch(() => undefined);
    await dispatcher?.destroy();
  }
}

/** Undefined if it is too large. */
async function textOf(answer: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_RESPONSE_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

interface Connections {
  readonly http: HttpAgent;
  readonly https: HttpsAgent;
}

/** Node's own client: undici would cost 10 MB of memory for as long as a daemon runs. */
function connections(options: TransportOptions): Connections {
  const common = {
    keepAlive: true,
    timeout: IDLE_CONNECTION_MS,
    maxSockets: MAX_CONNECTIONS,
    ...(options.proxy !== undefined && { proxyEnv: proxyEnvironment(options.proxy) }),
  };
  try {
    return { http: new HttpAgent(common), https: new HttpsAgent({ ...common, ...tlsOf(options) }) };
  } catch {
    throw wrongProxy();
  }
}

/** All are given, so that nothing is looked up in the process's environment. */
function proxyEnvironment({ url, except = "" }: ProxySettings): NodeJS.ProcessEnv {
  if (!URL.canParse(url)) throw wrongProxy();
  return { HTTP_PROXY: url, HTTPS_PROXY: url, NO_PROXY: except };
}

/** The library's message quotes the URL, which may hold a password. */
function wrongProxy(): SecretStoreError {
  return new SecretStoreError("misconfigured", "store.proxy or the environment's proxy is no usable URL");
}

function tlsOf({ caCert, tlsSkipVerify, clientCertificate }: TransportOptions) {
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
async function socketDispatcher(options: TransportOptions): Promise<Dispatcher> {
  const { Agent, EnvHttpProxyAgent } = await import("undici");
  const tls = tlsOf(options);
  const { proxy } = options;
  if (proxy === undefined) return new Agent({ connect: tls });
  return new EnvHttpProxyAgent({
    connect: tls,
    requestTls: tls,
    httpProxy: proxy.url,
    httpsProxy: proxy.url,
    noProxy: proxy.except ?? "",
  });
}
