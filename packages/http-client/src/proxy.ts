import { isIPv6 } from "node:net";
import { Dispatcher, EnvHttpProxyAgent } from "undici";
import { readProxy, type Proxy } from "./proxy-address.ts";
import { proxySetting, variable, type Environment } from "./proxy-setting.ts";

/**
 * The proxy for a URL from the environment: `HTTPS_PROXY` or `HTTP_PROXY` by the scheme, else `ALL_PROXY`. Lower case
 * names come before upper case. Undefined for loopback hosts, and for hosts that `NO_PROXY` names.
 *
 * @throws HttpClientError `proxy_misconfigured`
 */
export function proxyFor(target: string | URL, environment: Environment): Proxy | undefined {
  const url = new URL(target);
  const found = proxySetting(url, environment);
  if (found === undefined) return undefined;
  if (!takesProxy(url, variable(environment, "no_proxy")?.value ?? "")) return undefined;
  return readProxy(found.name, found.value, `Check ${found.name}, or name the host in NO_PROXY.`);
}

/** A dispatcher that opens no connection. */
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

/** Any address. No connection to it is opened. */
const ANY_PROXY = "http://proxy.invalid";

/**
 * Whether a request to the URL uses the proxy. undici reads `NO_PROXY`, but exports no function for it. So its agent sends
 * a request to a dispatcher that does nothing. Only for a proxy the agent passes its own `connect` function.
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

/** `NO_PROXY` in a form that undici 7 reads correctly: IPv6 in brackets as in URLs, and `*` alone. */
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
