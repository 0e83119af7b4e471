import { join } from "node:path";
import type { Places } from "../../agent-files/places.ts";
import type { ApiSection } from "../../config/sections/surface-sections.ts";
import type { SshAgentSection } from "../../config/sections/ssh-agent-section.ts";
import { expandHome } from "../../config/sections/rule.ts";

/** Names in the runtime folder, unless the configuration says otherwise. */
const API_SOCKET = "api.sock";
const PEER_SOCKET = "peer.sock";
const SSH_AGENT_SOCKET = "ssh-agent.sock";

/** Path of the API socket. @param api undefined where the configuration is not known */
export function apiSocketPath({ runtime, home }: Places, api?: ApiSection): string {
  const configured = api?.unix.path;
  return configured === undefined ? join(runtime, API_SOCKET) : expandHome(configured, home);
}

/** Path of the peer socket; undefined when it is off. */
export function peerSocketPath({ runtime, home }: Places, { enabled, peer }: ApiSection): string | undefined {
  if (!(peer.enabled ?? enabled)) return undefined;
  return peer.path === undefined ? join(runtime, PEER_SOCKET) : expandHome(peer.path, home);
}

/** Path of the main socket of the SSH agent. */
export function sshAgentSocketPath({ runtime, home }: Places, { unix }: SshAgentSection): string {
  return unix.path === undefined ? join(runtime, SSH_AGENT_SOCKET) : expandHome(unix.path, home);
}
