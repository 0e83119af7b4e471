import type { Proxy } from "./proxy-address.ts";
import { proxySetting, type Environment } from "./proxy-setting.ts";

/**
 * The same as `proxyFor`, but it loads undici, which reads `NO_PROXY`, only if a variable names a proxy.
 *
 * @throws HttpClientError `proxy_misconfigured`
 */
export async function findProxy(target: string | URL, environment: Environment): Promise<Proxy | undefined> {
  const url = new URL(target);
  if (proxySetting(url, environment) === undefined) return undefined;
  const { proxyFor } = await import("./proxy.ts");
  return proxyFor(url, environment);
}
