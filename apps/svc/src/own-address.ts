import { isLoopbackHost } from "@devplat/web-kit";

/**
 * The address that users type, for redirects, Origin checks and links. Without a configured one it is
 * `http://localhost:<port>` (`https:` with TLS), where the port is known once the listener is bound.
 */
export class OwnAddress {
  readonly #configured: string | undefined;
  readonly #scheme: "http" | "https";
  #port = 0;

  /**
   * @param configured `server.base_url`, without a slash at the end
   * @param scheme what the main listener speaks, for where no address is configured
   */
  constructor(configured: string | undefined, scheme: "http" | "https" = "http") {
    this.#configured = configured;
    this.#scheme = scheme;
  }

  /** Tells the port that the main listener got. */
  bound(port: number): void {
    this.#port = port;
  }

  get baseUrl(): string {
    return this.#configured ?? `${this.#scheme}://localhost:${this.#port}`;
  }

  get isHttps(): boolean {
    return this.baseUrl.startsWith("https:");
  }

  /** Whether a `Host` header means this service in development mode: a loopback name, or the base address. */
  isOwnHost(host: string | undefined): boolean {
    return isLoopbackHost(host) || host?.toLowerCase() === new URL(this.baseUrl).host;
  }

  /**
   * The origins whose pages may act with a session cookie: the base address, and a loopback address when that is what the
   * browser was sent to (a foreign page cannot make a browser send a loopback `Host`).
   */
  origins(host: string | undefined): readonly string[] {
    const own = [new URL(this.baseUrl).origin];
    return host !== undefined && isLoopbackHost(host)
      ? [...own, `${this.#scheme}://${host.toLowerCase()}`]
      : own;
  }
}
