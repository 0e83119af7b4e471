import { isIPv6 } from "node:net";
import { Dispatcher, EnvHttpProxyAgent } from "undici";
import { HttpClientError } from "./errors.ts";
import { proxySetting, variable, type Environment } from "./proxy-setting.ts";

/** A forward proxy. */
export interface Proxy {
  /** Scheme, host and port; no credentials. */
  readonly origin: string;
  /** The header `Proxy-Authorization`, if the address has a user name. */
  readonly authorization: string | undefined;
  /** The variable that names it. */
  readonly variable: string;
}

/** Text for people, as in `the proxy http://proxy.example:3128 (HTTPS_PROXY)`. */
export function proxyText(proxy: Proxy): string {
  return `the proxy ${proxy.origin} (${proxy.variable})`;
}

/**
 * The proxy for a URL by the environment: `HTTPS_PROXY` or `HTTP_PROXY` by the scheme, else `ALL_PROXY`, in either case
 * of letters (lower case first); undefined for loopback hosts, and hosts that `NO_PROXY` names.
 *
 * @throws HttpClientError `proxy_misconfigured`
 */
export function proxyFor(target: string | URL, environment: Environment): Proxy | undefined {
  const url = new URL(target);
  const found = proxySetting(url, environment);
  if (found === undefined) return undefined;
  if (!takesProxy(url, variable(environment, "no_proxy")?.value ?? "")) return undefined;
  return readProxy(found.name, found.value);
}

/** @throws HttpClientError `proxy_misconfigured`, without the text: it may hold a password */
function readProxy(name: string, text: string): Proxy {
  const url = URL.parse(text.includes("://") ? text : `http://${text}`);
  const authorization = url === null ? undefined : authorizationOf(url);
  if (url === null || !["http:", "https:"].includes(url.protocol) || authorization === null) {
    throw new HttpClientError("proxy_misconfigured", `${name} is not the address of an HTTP proxy`, {
      hint: "Set it to http://HOST:PORT.",
    });
  }
  return { origin: url.origin, authorization, variable: name };
}

/** Null if the credentials have broken percent-encoding. */
function authorizationOf({ username, password }: URL): string | undefined | null {
  if (username === "" && password === "") return undefined;
  try {
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    return `Basic ${Buffer.from(credentials).toString("base64")}`;
  } catch {
    return null;
  }
}

/** Stands for a connection that is not made. */
class NoConnection extends Dispatcher {
  override dispatch(): boolean {
    return true;
  }
  override close(): Promise<void> {
    return Promise.resolve();
  }
  override destroy(): Promise<void> {
    return Promise.resolve();
  }
}

/** Any address: it is not connected to. */
const ANY_PROXY = "http://proxy.invalid";

/**
 * Whether a URL is to be reached through the proxy. undici reads `NO_PROXY`. It has no function for that, so its agent is
 * asked which way it would send a request: only through a proxy it brings a `connect` function of its own.
 */
function takesProxy(url: URL, noProxy: string): boolean {
  let isProxied = false;
  const factory = (_origin: string | URL, options: object): Dispatcher => {
    isProxied = "connect" in options && typeof options.connect === "function";
    return new NoConnection();
  };
  const agent = new EnvHttpProxyAgent({
    httpProxy: ANY_PROXY,
    httpsProxy: ANY_PROXY,
    noProxy: withBrackets(noProxy),
    factory,
  });
  agent.dispatch({ origin: url.origin, path: "/", method: "GET" }, {});
  void agent.destroy();
  return isProxied;
}

/** `NO_PROXY` in a form that undici 7 reads right: IPv6 in brackets as in URLs, and `*` alone. */
function withBrackets(noProxy: string): string {
  const entries = noProxy.split(/[\s,]+/).filter((entry) => entry !== "");
  if (entries.includes("*")) return "*";
  return entries
    .map((entry) => {
      const [, address = entry, port = ""] = /^\[(.*)\](:\d+)?$/.exec(entry) ?? [];
      // A URL holds the shortest form of an address.
      return isIPv6(address) && !address.includes("%")
        ? new URL(`http://[${address}]`).hostname + port
        : entry;
    })
    .join(",");
}
