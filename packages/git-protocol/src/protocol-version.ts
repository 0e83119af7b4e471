/** Protocol versions that exist (gitprotocol-v2, gitprotocol-common). */
export type ProtocolVersion = 0 | 1 | 2;

/**
 * The version that a `Git-Protocol` header asks for: a colon-separated list of keys, of which `version=N` with the
 * highest known N counts (git's protocol.c, determine_protocol_version_server). Absent or unknown: 0.
 */
export function requestedProtocolVersion(header: string | undefined): ProtocolVersion {
  let highest: ProtocolVersion = 0;
  for (const item of (header ?? "").split(":")) {
    if (item === "version=2") return 2;
    if (item === "version=1") highest = 1;
  }
  return highest;
}
