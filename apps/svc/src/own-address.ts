import { isLoopbackHost } from "@devplat/web-kit/origin";

/**
 * The address that users type, for redirects, Origin checks and links. If none is configured, it is the address of the
 * main listener, or `localhost` if it listens on both addresses of that name. The port is known once the listener is
 * bound.
 */
export class OwnAddress {
  readonly #configured: string | undefined;
  readonly #scheme: "http" | "https";
  #host = "localhost";
  #port = 0;

  /**
   * @param configured `server.base_url`, without a slash at the end
   * @param scheme of the main listener; used if no address is configured
   */
  constructor(configured: string | undefined, scheme: "http" | "https" = "http") {
    this.#configured = configured;
    this.#scheme = scheme;
  }

  /** Sets the port of the main listener. @param host that it listens on; undefined: on every address */
  bound(port: number, host?: string): void {
    this.#port = port;
    this.#host = hostFor(host);
  }

  get baseUrl(): string {
    return this.#configured ?? `${this.#scheme}://${this.#host}:${this.#port}`;
  }

  get isHttps(): boolean {
    return this.baseUrl.startsWith("https:");
  }

  /** Whether a `Host` header means this service in development mode: a loopback name, or the base address. */
  isOwnHost(host: string | undefined): boolean {
    return isLoopbackHost(host) || host?.toLowerCase() === new URL(this.baseUrl).host;
  }

  /**
   * The origins whose pages may act with a session cookie: the base address, and a loopback address if the request has
   * one in `Host`. A foreign page cannot make a browser send a loopback `Host`.
   */
  origins(host: string | undefined): readonly string[] {
    const own = [new URL(this.baseUrl).origin];
    return host !== undefined && isLoopbackHost(host)
      ? [...own, `${this.#scheme}://${host.toLowerCase()}`]
      : own;
  }
}

/** A listener on one address is not `localhost`: another program may listen on the other address. */
function hostFor(listening: string | undefined): string {
  if (listening === undefined || listening === "::") return "localhost";
  if (listening === "0.0.0.0") return "127.0.0.1";
  return listening.includes(":") ? `[${listening}]` : listening;
}
