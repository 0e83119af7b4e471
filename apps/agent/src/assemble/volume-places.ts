import { join } from "node:path";
import type { Config } from "../config/schema.ts";
import { expandHome } from "../config/sections/rule.ts";
import type { DockerStatus, Registration } from "../docker-view.ts";
import type { Host } from "../host.ts";
import { registrationPlaces } from "../surfaces/volumes/engine/engine-places.ts";
import { readRegistrations } from "../surfaces/volumes/engine/registration.ts";

/** Names in the runtime folder, unless the configuration says otherwise. */
const SOCKET = "docker.sock";
const FOLDER = "volumes";

/** Socket of the volume plugin, and folder of the files of volumes. */
export function volumePlaces(
  { runtime, home }: Pick<Host["places"], "runtime" | "home">,
  { docker }: Pick<Config, "docker">,
): { readonly socket: string; readonly folder: string } {
  const placed = (configured: string | undefined, name: string): string =>
    configured === undefined ? join(runtime, name) : expandHome(configured, home);
  return { socket: placed(docker.socket, SOCKET), folder: placed(docker.volume_dir, FOLDER) };
}

/** The files that send engines to the socket of the volume plugin. */
export async function volumeRegistrations(
  { places, environment }: Pick<Host, "places" | "environment">,
  config: Pick<Config, "docker">,
): Promise<readonly Registration[]> {
  const { socket } = volumePlaces(places, config);
  return await readRegistrations(registrationPlaces(socket, places.home, environment), config.docker.enabled);
}

/** Status of container volumes without a daemon; undefined while there is nothing to say. */
export async function volumeStatus(
  host: Pick<Host, "places" | "environment">,
  config: Pick<Config, "docker">,
): Promise<DockerStatus | undefined> {
  const registrations = await volumeRegistrations(host, config);
  const { enabled } = config.docker;
  if (!enabled && registrations.length === 0) return undefined;
  const { socket, folder } = volumePlaces(host.places, config);
  return {
    enabled,
    socket,
    volume_dir: folder,
    next_volume_dir: null,
    registrations: [...registrations],
    volumes: [],
    error: null,
  };
}
