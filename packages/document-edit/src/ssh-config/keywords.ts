/** Keywords that may be repeated to add a value (ssh_config(5)). For all others, the first value counts. */
export const LIST_KEYWORDS: ReadonlySet<string> = new Set([
  "CertificateFile",
  "DynamicForward",
  "IdentityFile",
  "Include",
  "LocalForward",
  "RemoteForward",
  "SendEnv",
  "SetEnv",
]);

/** Keywords with several values that ssh uses. For `SetEnv`, it uses only the first line. */
export const ADDING_KEYWORDS: ReadonlySet<string> = new Set(
  [...LIST_KEYWORDS].filter((keyword) => keyword !== "SetEnv"),
);

/** Keywords for the same setting as another one: older names, and two kinds of proxy, of which the first counts. */
const SETTINGS: ReadonlyMap<string, string> = new Map([
  ["ProxyCommand", "ProxyJump"],
  ["challengeresponseauthentication", "KbdInteractiveAuthentication"],
  ["dsaauthentication", "PubkeyAuthentication"],
  ["hostbasedkeytypes", "hostbasedacceptedalgorithms"],
  ["pubkeyacceptedkeytypes", "PubkeyAcceptedAlgorithms"],
  ["skeyauthentication", "KbdInteractiveAuthentication"],
  ["smartcarddevice", "PKCS11Provider"],
  ["tisauthentication", "KbdInteractiveAuthentication"],
]);

/** The setting that a keyword changes. */
export function settingOf(keyword: string): string {
  return SETTINGS.get(keyword) ?? keyword;
}

/** Keywords with a command as value: the rest of the line, including `#` and quotes. */
export const RAW_KEYWORDS: ReadonlySet<string> = new Set([
  "KnownHostsCommand",
  "LocalCommand",
  "ProxyCommand",
  "RemoteCommand",
]);

/** Spelling in ssh_config(5) of frequent keywords. ssh itself ignores case. */
const SPELLINGS: ReadonlyMap<string, string> = new Map(
  [
    "AddKeysToAgent",
    "AddressFamily",
    "BatchMode",
    "BindAddress",
    "CanonicalDomains",
    "CanonicalizeHostname",
    "CertificateFile",
    "CheckHostIP",
    "Ciphers",
    "Compression",
    "ConnectTimeout",
    "ConnectionAttempts",
    "ControlMaster",
    "ControlPath",
    "ControlPersist",
    "DynamicForward",
    "EscapeChar",
    "ExitOnForwardFailure",
    "ForwardAgent",
    "ForwardX11",
    "GSSAPIAuthentication",
    "GatewayPorts",
    "GlobalKnownHostsFile",
    "HashKnownHosts",
    "Host",
    "HostKeyAlgorithms",
    "HostKeyAlias",
    "HostName",
    "IPQoS",
    "IdentitiesOnly",
    "IdentityAgent",
    "IdentityFile",
    "IgnoreUnknown",
    "Include",
    "KbdInteractiveAuthentication",
    "KexAlgorithms",
    "KnownHostsCommand",
    "LocalCommand",
    "LocalForward",
    "LogLevel",
    "MACs",
    "Match",
    "PKCS11Provider",
    "PasswordAuthentication",
    "PermitLocalCommand",
    "Port",
    "PreferredAuthentications",
    "ProxyCommand",
    "ProxyJump",
    "ProxyUseFdpass",
    "PubkeyAcceptedAlgorithms",
    "PubkeyAuthentication",
    "RekeyLimit",
    "RemoteCommand",
    "RemoteForward",
    "RequestTTY",
    "RevokedHostKeys",
    "SecurityKeyProvider",
    "SendEnv",
    "ServerAliveCountMax",
    "ServerAliveInterval",
    "SessionType",
    "SetEnv",
    "StreamLocalBindMask",
    "StreamLocalBindUnlink",
    "StrictHostKeyChecking",
    "TCPKeepAlive",
    "Tag",
    "Tunnel",
    "UpdateHostKeys",
    "User",
    "UserKnownHostsFile",
    "VerifyHostKeyDNS",
    "VisualHostKey",
  ].map((keyword) => [keyword.toLowerCase(), keyword]),
);

/** Name of a keyword, without regard to case. */
export function keywordOf(written: string): string {
  const folded = written.toLowerCase();
  return SPELLINGS.get(folded) ?? folded;
}
