import { HttpClientError } from "./errors.ts";

/** A forward proxy. */
export interface Proxy {
  /** Scheme, host and port, without credentials. */
  readonly origin: string;
  /** Value of the header `Proxy-Authorization`, if the address has a user name. */
  readonly authorization: string | undefined;
  /** The variable or setting that names it. */
  readonly source: string;
  /** Advice to the user if the proxy fails. */
  readonly hint: string;
}

/** Text for people, as in `the proxy http://proxy.example:3128 (HTTPS_PROXY)`. */
export function proxyText(proxy: Proxy): string {
  return `the proxy ${proxy.origin} (${proxy.source})`;
}

/**
 * Reads a proxy's address: `http://` or `https://`, or a host and port alone.
 *
 * @param source the variable or setting that holds the text; for errors
 * @param hint advice to the user if the proxy fails. Default: check the source
 * @throws HttpClientError `proxy_misconfigured`, without the text, which may hold a password
 */
export function readProxy(source: string, text: string, hint = `Check ${source}.`): Proxy {
  const url = URL.parse(text.includes("://") ? text : `http://${text}`);
  const authorization = url === null ? undefined : authorizationOf(url);
  if (url === null || !["http:", "https:"].includes(url.protocol) || authorization === null) {
    throw new HttpClientError("proxy_misconfigured", `${source} is not the address of an HTTP proxy`, {
      hint: "Set it to http://HOST:PORT.",
    });
  }
  return { origin: url.origin, authorization, source, hint };
}

/** Value of the header. Null if the percent-encoding of the credentials is invalid. */
function authorizationOf({ username, password }: URL): string | undefined | null {
  if (username === "" && password === "") return undefined;
  try {
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    return `Basic ${Buffer.from(credentials).toString("base64")}`;
  } catch {
    return null;
  }
}
