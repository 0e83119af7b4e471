/** 1 to 65535, without leading zeros. */
const PORT = "(?::([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?";
const LABEL = "[A-Za-z0-9_-]+";
const ADDRESS = String.raw`\[[0-9A-Fa-f:.]+\]`;
/** A host name or bracketed IPv6 address, and perhaps a port. Nothing else that a URL could hold. */
const HOST = new RegExp(String.raw`^(${LABEL}(?:\.${LABEL})*|${ADDRESS})${PORT}$`);
/** A host of `git_credentials`: a host as git names it, in which `*` matches one label. */
export const GIT_HOST_PATTERN = new RegExp(
  String.raw`^((?:\*|${LABEL})(?:\.(?:\*|${LABEL}))*|${ADDRESS})${PORT}$`,
);
const DEFAULT_PORTS: Readonly<Record<string, number>> = { https: 443, http: 80 };
/** Hosts that plain http reaches without leaving this machine. */
const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

interface HostAndPort {
  readonly name: string;
  readonly port: number | undefined;
}

/**
 * Whether a host of `git_credentials` covers what git asks for. This is how git compares `credential.URL` of its own
 * configuration: the port must be equal, a missing one is the protocol's, and `*` matches exactly one label.
 * Plain http counts for loopback hosts only: a password must not go in the clear.
 * @param protocol and host: as git sends them, unchecked
 */
export function coversGitHost(pattern: string, protocol: string, host: string): boolean {
  const wanted = hostAndPort(GIT_HOST_PATTERN, pattern);
  const asked = hostAndPort(HOST, host);
  const defaultPort = Object.hasOwn(DEFAULT_PORTS, protocol) ? DEFAULT_PORTS[protocol] : undefined;
  if (wanted === undefined || asked === undefined || defaultPort === undefined) return false;
  if (protocol === "http" && !LOOPBACK_HOSTS.has(asked.name)) return false;
  if ((wanted.port ?? defaultPort) !== (asked.port ?? defaultPort)) return false;
  if (asked.name.startsWith("[") || wanted.name.startsWith("[")) return asked.name === wanted.name;
  const labels = asked.name.split(".");
  const wantedLabels = wanted.name.split(".");
  if (labels.length !== wantedLabels.length) return false;
  return wantedLabels.every((label, index) => label === "*" || label === labels[index]);
}

function hostAndPort(form: RegExp, text: string): HostAndPort | undefined {
  const [, name, digits] = form.exec(text) ?? [];
  if (name === undefined) return undefined;
  return { name: name.toLowerCase(), port: digits === undefined ? undefined : Number(digits) };
}
