/** Keywords that may be repeated, each adding a value (ssh_config(5)); of all others the first value counts. */
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

/** Keywords of which ssh uses every value. Of `SetEnv`, it uses only the first line. */
export const ADDING_KEYWORDS: ReadonlySet<string> = new Set(
  [...LIST_KEYWORDS].filter((keyword) => keyword !== "SetEnv"),
);

/** Keywords that set the same as another one: older names, and the two ways through a proxy, of which the first counts. */
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

/** Keywords whose value is a command: the rest of the line, `#` and quotes included. */
export const RAW_KEYWORDS: ReadonlySet<string> = new Set([
  "KnownHostsCommand",
  "LocalCommand",
  "ProxyCommand",
  "RemoteCommand",
]);

/** The spelling of ssh_config(5), for the keywords that are used most; ssh itself ignores letter case. */
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

/** The name under which a keyword is known, whatever its letter case. */
export function keywordOf(written: string): string {
  const folded = written.toLowerCase();
  return SPELLINGS.get(folded) ?? folded;
}
