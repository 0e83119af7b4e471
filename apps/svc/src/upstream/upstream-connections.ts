import { readFileSync } from "node:fs";
import type { SecureContext } from "node:tls";
import { messageOf } from "@devplat/base";
import { HttpClient, HttpClientError, findProxy, type Proxy } from "@devplat/http-client";
import type { Dispatcher } from "undici";
import { SvcError } from "../errors.ts";

/** Milliseconds for a connection to the code host to come up. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Milliseconds that an unused connection is kept. Less than servers usually keep theirs, so that none is stale. */
const KEEP_ALIVE_MS = 4000;

/** Connections to one origin for logins, look-ups and checks. */
const SMALL_REQUEST_CONNECTIONS = 16;

export interface UpstreamConnectionOptions {
  /** PEM file with certificates that are trusted in addition to the system's; undefined: none. */
  readonly caFile?: string | undefined;
  /** Where `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` are read from, in either case of letters. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

/** How the code host is reached, the same for git, API, login and apps: trust and proxies are settled here once. */
export class UpstreamConnections {
  /** Made once: with the authorities as text each connection would read all of them again. */
  readonly #trust: SecureContext | undefined;
  readonly #environment: Readonly<Record<string, string | undefined>>;
  /** For small requests: logins, look-ups and checks. */
  readonly http: HttpClient;

  /** @throws SvcError `config_refused`: the file cannot be read, or holds no certificate */
  constructor({ caFile, environment = {} }: UpstreamConnectionOptions = {}) {
    this.#environment = environment;
    if (caFile !== undefined) {
      const { createSecureContext, getCACertificates } = process.getBuiltinModule("node:tls");
      this.#trust = createSecureContext({ ca: [...getCACertificates("default"), readCertificates(caFile)] });
    }
    this.http = new HttpClient({
      environment,
      idleMs: KEEP_ALIVE_MS,
      maxConnections: SMALL_REQUEST_CONNECTIONS,
      ...(this.#trust !== undefined && { tls: { secureContext: this.#trust } }),
    });
  }

  /** Looks for a proxy to an origin, which is refused now and not by the first request. @throws SvcError `config_refused` */
  async check(origin: string): Promise<void> {
    await this.#proxyFor(origin);
  }

  /**
   * Connections to one origin. Time-outs of responses are the caller's: a clone may take hours.
   *
   * @param connections maximum number
   * @throws SvcError `config_refused`: the setting is not the address of a proxy
   */
  async pool(origin: string, connections: number): Promise<Dispatcher> {
    const proxy = await this.#proxyFor(origin);
    // undici is loaded with the first request: nothing of a start needs it.
    const { connectionsTo } = await import("@devplat/http-client/connections");
    const trust = this.#trust === undefined ? {} : { secureContext: this.#trust };
    const common = { connections, keepAliveTimeout: KEEP_ALIVE_MS, headersTimeout: 0, bodyTimeout: 0 };
    const connect = { timeout: CONNECT_TIMEOUT_MS, ...trust };
    return connectionsTo(origin, proxy, { ...common, connect });
  }

  /** Closes the connections of small requests; pools are their owners'. */
  async close(): Promise<void> {
    await this.http.close();
  }

  /** @throws SvcError `config_refused`: the setting is not the address of a proxy */
  async #proxyFor(origin: string): Promise<Proxy | undefined> {
    try {
      return await findProxy(origin, this.#environment);
    } catch (error) {
      if (!(error instanceof HttpClientError)) throw error;
      const { message, hint } = error;
      throw new SvcError("config_refused", message, { ...(hint !== undefined && { hint }) });
    }
  }
}

function readCertificates(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new SvcError("config_refused", `host.ca_file ${file} cannot be read: ${messageOf(error)}`, {
      cause: error,
    });
  }
  if (text.includes("-----BEGIN CERTIFICATE-----")) return text;
  throw new SvcError("config_refused", `host.ca_file ${file} holds no PEM certificate`);
}
