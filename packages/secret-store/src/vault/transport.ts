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
  readonly text: string;
}

/** Faults before a byte of the request left this host. */
const UNSENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);
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
  #dispatcher: Promise<Dispatcher> | undefined;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /**
   * One request, no retry, no redirect.
   * @param origin named in errors
   * @throws TransportError, or SecretStoreError `invalid_response` for an answer that is too large
   */
  async send(
    method: string,
    url: string,
    origin: string,
    headers: Record<string, string>,
    body: string | undefined,
    signal: AbortSignal,
  ): Promise<TransportResponse> {
    this.#dispatcher ??= connect(this.#options);
    const dispatcher = await this.#dispatcher;
    try {
      const response = await dispatcher.request({
        ...splitUrl(url),
        method,
        headers,
        body: body ?? null,
        signal,
      });
      const location = response.headers["location"];
      const text = await response.body.text();
      return {
        status: response.statusCode,
        location: typeof location === "string" ? location : undefined,
        text,
      };
    } catch (error) {
      const fault = systemCode(error) ?? (signal.aborted ? "no answer in time" : "connection fault");
      if (fault === "UND_ERR_RES_EXCEEDED_MAX_SIZE") {
        throw new SecretStoreError(
          "invalid_response",
          `the store at ${origin} sent an answer of more than ${MAX_RESPONSE_BYTES} bytes`,
        );
      }
      throw new TransportError(fault, origin, error);
    }
  }

  /** See {@link socketMessages}. The server's reason for not opening it is not told: ask by {@link Transport.send}. */
  async *messages(
    url: string,
    headers: Record<string, string>,
    signal: AbortSignal,
    opened: () => void,
  ): AsyncGenerator<string> {
    this.#dispatcher ??= connect(this.#options);
    yield* socketMessages(url, headers, await this.#dispatcher, signal, opened);
  }

  async close(): Promise<void> {
    const dispatcher = await this.#dispatcher?.catch(() => undefined);
    await dispatcher?.destroy();
  }
}

function splitUrl(url: string): { origin: string; path: string } {
  const { origin, pathname, search } = new URL(url);
  return { origin, path: pathname + search };
}

function keyOf(key: NonNullable<TransportOptions["clientCertificate"]>["key"]) {
  if (key instanceof Secret) return { key: key.reveal() };
  return { privateKeyEngine: key.engine, privateKeyIdentifier: key.identifier.reveal() };
}

async function connect(options: TransportOptions): Promise<Dispatcher> {
  // Loaded at the first request: it costs 80 ms of processor time, which a command that asks nothing need not pay.
  const { Agent, EnvHttpProxyAgent } = await import("undici");
  const tls = {
    ...(options.caCert !== undefined && { ca: options.caCert }),
    ...(options.tlsSkipVerify === true && { rejectUnauthorized: false }),
    ...(options.clientCertificate !== undefined && {
      cert: options.clientCertificate.chain,
      ...keyOf(options.clientCertificate.key),
    }),
  };
  const common = { connect: tls, maxResponseSize: MAX_RESPONSE_BYTES };
  if (options.proxy === undefined) return new Agent(common);
  try {
    // All three are given, so that it does not look into the environment itself.
    return new EnvHttpProxyAgent({
      ...common,
      requestTls: tls,
      httpProxy: options.proxy.url,
      httpsProxy: options.proxy.url,
      noProxy: options.proxy.except ?? "",
    });
  } catch {
    // The library's message quotes the URL, which may hold a password.
    throw new SecretStoreError("misconfigured", "store.proxy or the environment's proxy is no usable URL");
  }
}
