/** Versions of the protocol (gitprotocol-v2, gitprotocol-common). */
export type ProtocolVersion = 0 | 1 | 2;

/**
 * Version that a `Git-Protocol` header requests. The header is a list of keys, separated by colons. The highest known N in
 * `version=N` counts (git's protocol.c, determine_protocol_version_server). The default is 0.
 */
export function requestedProtocolVersion(header: string | undefined): ProtocolVersion {
  let highest: ProtocolVersion = 0;
  for (const item of (header ?? "").split(":")) {
    if (item === "version=2") return 2;
    if (item === "version=1") highest = 1;
  }
  return highest;
}
