import { ForwardError } from "../errors/forward-error.ts";
import { hostKeyAlias } from "./known-hosts.ts";
import type { Route, RouteHost } from "./route.ts";

/** Name of the remote in the generated file. No host can have it, so that no block is mistaken for another one. */
export const REMOTE_ALIAS = "remote+";

/**
 * Options that are the same for every host. The user's configuration is not read, so these are ssh's defaults or stricter
 * than them: each is written down, so that no other version of ssh and no build of a distribution changes it.
 */
const SAME_FOR_ALL = {
  BatchMode: "yes",
  GlobalKnownHostsFile: "/dev/null",
  UpdateHostKeys: "no",
  CheckHostIP: "no",
  VerifyHostKeyDNS: "no",
  NoHostAuthenticationForLocalhost: "no",
  KnownHostsCommand: "none",
  CanonicalizeHostname: "no",
  HashKnownHosts: "no",
  RemoteCommand: "none",
  SessionType: "none",
  RequestTTY: "no",
  ForkAfterAuthentication: "no",
  StdinNull: "no",
  Tunnel: "no",
  ForwardAgent: "no",
  ForwardX11: "no",
  ClearAllForwardings: "yes",
  GatewayPorts: "no",
  StreamLocalBindMask: "0177",
  StreamLocalBindUnlink: "no",
  PermitLocalCommand: "no",
  EscapeChar: "none",
  GSSAPIDelegateCredentials: "no",
  AddKeysToAgent: "no",
  ServerAliveInterval: "6",
  ServerAliveCountMax: "2",
  ConnectTimeout: "20",
  ConnectionAttempts: "1",
  ControlMaster: "no",
  ControlPath: "none",
  ControlPersist: "no",
  // The reasons of failures are read from its messages.
  LogLevel: "INFO",
  VisualHostKey: "no",
} as const;

/** Options that the oldest version of ssh that is accepted does not know. */
const LATER_OPTIONS = [
  "KnownHostsCommand",
  "SessionType",
  "ForkAfterAuthentication",
  "StdinNull",
  "GSSAPIDelegateCredentials",
];

/** A connection that ends at the question who the user is: it only shows the server's key. */
const CANNOT_AUTHENTICATE = {
  PreferredAuthentications: "none",
  PubkeyAuthentication: "no",
  PasswordAuthentication: "no",
  KbdInteractiveAuthentication: "no",
  GSSAPIAuthentication: "no",
  HostbasedAuthentication: "no",
} as const;

/** One host's part of {@link ConnectionConfiguration}. */
export interface ConfiguredHost {
  readonly host: RouteHost;
  /** File with the keys that are believed for this host; see `knownHostsText`. */
  readonly knownHostsFile: string;
  /**
   * - `verify`: only the keys of the file.
   * - `learn`: any key, which is written to the file; the connection cannot authenticate.
   * - `ignore`: any key (`ssh.insecure_ignore_host_key`).
   */
  readonly hostKey: "verify" | "learn" | "ignore";
}

/** A connection to be written as a configuration file of ssh. */
export interface ConnectionConfiguration {
  /** As the hosts of a {@link Route}. */
  readonly hosts: readonly ConfiguredHost[];
  /** Socket of the SSH agent to use instead of the user's. */
  readonly identityAgent: string | undefined;
  /** The system that ssh runs on. Default: this one. */
  readonly platform?: NodeJS.Platform;
}

/** @param settingsOf the files and the mode of a host, by its place on the route */
export function configuredHosts(
  route: Route,
  settingsOf: (host: RouteHost, index: number) => Omit<ConfiguredHost, "host">,
): ConfiguredHost[] {
  return route.map((host, index) => ({ host, ...settingsOf(host, index) }));
}

/**
 * The configuration file of one connection, for `ssh -F`. Every hop has a block with the same options: the process that
 * ProxyJump starts is given this file and nothing else.
 *
 * @throws ForwardError `configuration_refused` for a value that ssh's syntax cannot carry
 */
export function connectionConfiguration({
  hosts,
  identityAgent,
  platform = process.platform,
}: ConnectionConfiguration): string {
  // OpenSSH for Windows takes both separators, and a backslash is refused below.
  const toPath = (path: string): string => (platform === "win32" ? path.replaceAll("\\", "/") : path);
  const aliases = hosts.map((_, index) => (index === hosts.length - 1 ? REMOTE_ALIAS : `hop${index + 1}+`));
  const blocks = hosts.map((each, index) => {
    const knownHostsFile = toPath(each.knownHostsFile);
    const options = { ...hostOptions({ ...each, knownHostsFile }, identityAgent), ...SAME_FOR_ALL };
    const lines = Object.entries(options).map(([key, value]) => `  ${key} ${value}\n`);
    return `Host ${aliases[index]}\n${lines.join("")}${keyLines(each.host, toPath)}${proxyLine(each.host, aliases[index - 1])}`;
  });
  return `IgnoreUnknown ${LATER_OPTIONS.join(",")}\n${blocks.join("")}`;
}

function hostOptions(
  { host, knownHostsFile, hostKey }: ConfiguredHost,
  identityAgent: string | undefined,
): Record<string, string> {
  const agent = identityAgent === undefined ? host.identityAgent : withoutTokens(identityAgent);
  return {
    HostName: withoutTokens(host.hostName),
    ...(host.user !== undefined && { User: quoted("User", host.user) }),
    Port: String(host.port),
    HostKeyAlias: hostKeyAlias(host.hostName),
    StrictHostKeyChecking: hostKey === "verify" ? "yes" : "no",
    UserKnownHostsFile: quoted(
      "UserKnownHostsFile",
      withoutTokens(hostKey === "ignore" ? "/dev/null" : knownHostsFile),
    ),
    IdentitiesOnly: host.identitiesOnly ? "yes" : "no",
    ...(agent !== undefined && { IdentityAgent: quoted("IdentityAgent", agent) }),
    ...(hostKey === "learn" ? CANNOT_AUTHENTICATE : {}),
  };
}

function keyLines(host: RouteHost, toPath: (path: string) => string): string {
  const line = (key: string, value: string): string =>
    `  ${key} ${quoted(key, toPath(withName(value, host)))}\n`;
  return [
    ...host.identityFiles.map((path) => line("IdentityFile", path)),
    ...host.certificateFiles.map((path) => line("CertificateFile", path)),
  ].join("");
}

function proxyLine(host: RouteHost, hopAlias: string | undefined): string {
  if (hopAlias !== undefined) return `  ProxyJump ${hopAlias}\n`;
  if (host.proxyCommand === undefined) return "  ProxyJump none\n";
  if (/\p{Cc}/u.test(host.proxyCommand)) throw refused("ProxyCommand");
  // ssh takes the rest of the line as it is.
  return `  ProxyCommand ${withName(host.proxyCommand, host)}\n`;
}

/** In the generated file `%n` would be our alias, and `%k` the name of the pin. */
function withName(value: string, host: RouteHost): string {
  return value.replaceAll(/%(.)/gu, (token, letter: string) =>
    letter === "n" || letter === "k" ? host.name.replaceAll("%", "%%") : token,
  );
}

/** A value that ssh would expand, as it is. */
function withoutTokens(value: string): string {
  if (value.includes("${")) throw refused("a path with ${");
  return value.replaceAll("%", "%%");
}

/** A value as one word. Versions of ssh differ in how they read a quote or a backslash inside of quotes. */
function quoted(key: string, value: string): string {
  if (value === "" || /["\\\p{Cc}]/u.test(value)) throw refused(key);
  return `"${value}"`;
}

function refused(key: string): ForwardError {
  return new ForwardError("configuration_refused", `Cannot pass on ${key} of the ssh configuration`, {
    hint: "Use a value without quotes, backslashes and control characters.",
  });
}
