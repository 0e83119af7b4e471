export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable of the environment that names a proxy. */
export interface ProxySetting {
  readonly name: string;
  readonly value: string;
}

/**
 * The variable that names the proxy for a URL: `HTTPS_PROXY` or `HTTP_PROXY` by the scheme, else `ALL_PROXY`. Lower
 * case names come before upper case. Undefined for loopback hosts. It does not read `NO_PROXY`, because that needs undici,
 * which is loaded only if this function finds a variable.
 */
export function proxySetting(url: URL, environment: Environment): ProxySetting | undefined {
  if (isLoopback(url.hostname)) return undefined;
  const scheme = url.protocol === "https:" ? "https_proxy" : "http_proxy";
  return variable(environment, scheme) ?? variable(environment, "all_proxy");
}

/** The variable with a name in lower or upper case, lower case first. An empty value counts as unset. */
export function variable(environment: Environment, lower: string): ProxySetting | undefined {
  for (const name of [lower, lower.toUpperCase()]) {
    const value = environment[name];
    if (value !== undefined && value !== "") return { name, value };
  }
  return undefined;
}

/** Whether the host is loopback. No proxy is used for it, as in Go. */
function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}
