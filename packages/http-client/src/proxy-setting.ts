export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable of the environment that names a proxy. */
export interface ProxySetting {
  readonly name: string;
  readonly value: string;
}

/**
 * The variable that names the proxy for a URL: `HTTPS_PROXY` or `HTTP_PROXY` by the scheme, else `ALL_PROXY`, in either
 * case of letters (lower case first). Undefined for loopback hosts. `NO_PROXY` is not read here: that needs undici, which
 * a command line loads only where this function finds a variable.
 */
export function proxySetting(url: URL, environment: Environment): ProxySetting | undefined {
  if (isLoopback(url.hostname)) return undefined;
  const scheme = url.protocol === "https:" ? "https_proxy" : "http_proxy";
  return variable(environment, scheme) ?? variable(environment, "all_proxy");
}

/** The value of a variable in either case of letters, lower case first. An empty one counts as unset. */
export function variable(environment: Environment, lower: string): ProxySetting | undefined {
  for (const name of [lower, lower.toUpperCase()]) {
    const value = environment[name];
    if (value !== undefined && value !== "") return { name, value };
  }
  return undefined;
}

/** A server on this host is never reached through another one. This is also Go's rule. */
function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}
