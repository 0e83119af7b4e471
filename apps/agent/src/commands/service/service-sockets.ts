import { volumePlaces } from "../../assemble/volume-places.ts";
import type { Config } from "../../config/schema.ts";
import type { Host } from "../../host.ts";
import type { SocketName } from "../../surfaces/listening/activation.ts";
import { mountHelperSocket } from "../../surfaces/mount/mount-status.ts";
import { apiSocketPath, peerSocketPath, sshAgentSocketPath } from "../../surfaces/socket/places.ts";

/**
 * Sockets that a service manager should open for the daemon, with their paths: those that the configuration turns on, and has not
 * put elsewhere. The daemon opens the others itself.
 */
export function serviceSockets(
  { places }: Pick<Host, "places">,
  config: Config,
): ReadonlyMap<SocketName, string> {
  const { api, agent, docker } = config;
  const found = new Map<SocketName, string>([["mount", mountHelperSocket(places)]]);
  if (api.enabled && api.unix.path === undefined) found.set("api", apiSocketPath(places, api));
  const peer = peerSocketPath(places, api);
  if (peer !== undefined && api.peer.path === undefined) found.set("peer", peer);
  if (agent.enabled && agent.unix.path === undefined) found.set("agent", sshAgentSocketPath(places, agent));
  if (docker.enabled && docker.socket === undefined) found.set("docker", volumePlaces(places, config).socket);
  return found;
}
