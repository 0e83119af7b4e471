import { readFileSync } from "node:fs";
import { createSecureContext, getCACertificates, type SecureContext } from "node:tls";
import { messageOf } from "@devplat/base";
import { Pool, ProxyAgent, type Dispatcher } from "undici";
import { SvcError } from "./errors.ts";

/** Milliseconds for a connection to the code host to come up. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Milliseconds that an unused connection is kept. Less than servers usually keep theirs, so that none is stale. */
const KEEP_ALIVE_MS = 4000;

/** Connections to one origin for logins, look-ups and checks. */
const SHARED_CONNECTIONS = 16;

export interface UpstreamConnectionOptions {
  /** PEM file with certificates that are trusted beside the system's; undefined: none. */
  readonly caFile?: string | undefined;
  /** Where `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` are read from, in either case of letters. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

/** How the code host is reached, the same for git, API, login and apps: trust and proxies are settled here once. */
export class UpstreamConnections {
  /** Made once: with the authorities as text each connection would read all of them again. */
  readonly #trust: SecureContext | undefined;
  readonly #environment: Readonly<Record<string, string | undefined>>;
  readonly #shared = new Map<string, Dispatcher>();

  /** @throws SvcError `config_refused`: the file cannot be read, or holds no certificate */
  constructor({ caFile, environment = {} }: UpstreamConnectionOptions = {}) {
    this.#environment = environment;
    if (caFile === undefined) return;
    this.#trust = createSecureContext({ ca: [...getCACertificates("default"), readCertificates(caFile)] });
  }

  /**
   * Connections to one origin. Time-outs of answers are the caller's: a clone may take hours.
   *
   * @param connections at most so many at once
   */
  pool(origin: string, connections: number): Dispatcher {
    const trust = this.#trust === undefined ? {} : { secureContext: this.#trust };
    const common = { connections, keepAliveTimeout: KEEP_ALIVE_MS, headersTimeout: 0, bodyTimeout: 0 };
    const connect = { timeout: CONNECT_TIMEOUT_MS, ...trust };
    const proxy = this.proxyFor(origin);
    if (proxy === undefined) return new Pool(origin, { ...common, connect });
    return new ProxyAgent({ ...common, uri: proxy, requestTls: connect, connectTimeout: CONNECT_TIMEOUT_MS });
  }

  /** A shared, small set of connections to an address' origin, for questions of our own. */
  dispatcher(url: URL): Dispatcher {
    let kept = this.#shared.get(url.origin);
    if (kept === undefined) {
      kept = this.pool(url.origin, SHARED_CONNECTIONS);
      this.#shared.set(url.origin, kept);
    }
    return kept;
  }

  /** Closes the shared connections; pools are their owners'. */
  async close(): Promise<void> {
    await Promise.all([...this.#shared.values()].map(async (dispatcher) => dispatcher.destroy()));
  }

  /**
   * The proxy for an origin, as curl and git choose it; undefined: none.
   *
   * @throws SvcError `config_refused`: what is set is no address of one
   */
  proxyFor(origin: string): string | undefined {
    const url = new URL(origin);
    const scheme = url.protocol === "https:" ? "https_proxy" : "http_proxy";
    const name = this.#variable(scheme) === undefined ? "all_proxy" : scheme;
    const proxy = this.#variable(name);
    if (proxy === undefined || this.#isExempt(url)) return undefined;
    const address = proxy.includes("://") ? proxy : `http://${proxy}`;
    if (["http:", "https:"].includes(URL.parse(address)?.protocol ?? "")) return address;
    // It may hold a password, and is not quoted.
    throw new SvcError("config_refused", `${name.toUpperCase()} is not the address of an HTTP proxy`, {
      hint: "Set it to http://HOST:PORT.",
    });
  }

  #isExempt(url: URL): boolean {
    const port = url.port === "" ? (url.protocol === "https:" ? "443" : "80") : url.port;
    const name = url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
    return (this.#variable("no_proxy") ?? "").split(/[\s,]+/).some((entry) => {
      const [, pattern = "", wantedPort] = /^(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? [];
      if (entry === "*") return true;
      if (pattern === "" || (wantedPort !== undefined && wantedPort !== port)) return false;
      const bare = pattern.replace(/^\*?\.|^\[|\]$/g, "");
      return name === bare || name.endsWith(`.${bare}`);
    });
  }

  #variable(name: string): string | undefined {
    const value = this.#environment[name] ?? this.#environment[name.toUpperCase()];
    return value === "" ? undefined : value;
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
