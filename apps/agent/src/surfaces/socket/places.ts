import type { Places } from "../../agent-files/places.ts";
import type { ApiSection } from "../../config/sections/surface-sections.ts";
import type { SshAgentSection } from "../../config/sections/ssh-agent-section.ts";
import { expandHome } from "../../config/sections/rule.ts";
import { isPipeName, pipeName } from "../listening/pipe-name.ts";

/** Names in the runtime folder, unless the configuration says otherwise. */
const API_SOCKET = "api.sock";
const PEER_SOCKET = "peer.sock";
const SSH_AGENT_SOCKET = "ssh-agent.sock";

/** Path of the API socket. @param api undefined where the configuration is not known */
export function apiSocketPath(places: Places, api?: ApiSection): string {
  return socketPath(places, API_SOCKET, api?.unix.path);
}

/** Path of the peer socket; undefined when it is off. */
export function peerSocketPath(places: Places, { enabled, peer }: ApiSection): string | undefined {
  if (!(peer.enabled ?? enabled)) return undefined;
  return socketPath(places, PEER_SOCKET, peer.path);
}

/** Path of the main socket of the SSH agent. */
export function sshAgentSocketPath(places: Places, { unix }: SshAgentSection): string {
  return socketPath(places, SSH_AGENT_SOCKET, unix.path);
}

/** The configured address, else a socket in the runtime folder, or the pipe that takes its place. */
function socketPath({ runtime, home, platform }: Places, name: string, configured?: string): string {
  if (configured !== undefined)
    return isPipeName(configured) ? configured : expandHome(configured, home, platform);
  return platform.hasNamedPipes ? pipeName(runtime, name) : platform.path.join(runtime, name);
}
