import { join } from "node:path";
import { BRAND } from "../../../brand.ts";
import type { Registration } from "../../../docker-view.ts";

/** Names another folder for Docker's registration files, for tests and for engines that were built with one. */
const DOCKER_VARIABLE = `${BRAND.environmentPrefix}_DOCKER_PLUGINS`;
/** The same for Podman's configuration. */
const PODMAN_VARIABLE = `${BRAND.environmentPrefix}_PODMAN_CONFIG`;

/** Folder in which Docker looks for plugins that register themselves by a file (its documentation, "Plugin discovery"). */
const DOCKER_PLUGINS = "/etc/docker/plugins";
/** Folder with parts of Podman's configuration (containers.conf(5)). */
const PODMAN_CONFIG = "/etc/containers/containers.conf.d";

/** A file that tells an engine where the socket of the plugin is. */
export interface RegistrationPlace {
  readonly engine: Registration["engine"];
  /** Absolute path. */
  readonly path: string;
  /** Whether root has to write it. */
  readonly isSystem: boolean;
  /** Content of the file. */
  readonly content: string;
  /** The line of the content that names the socket. */
  readonly line: string;
}

/**
 * Files in which the engines of this host look.
 *
 * - Docker as root: `/etc/docker/plugins`; rootless Docker before 24, and 25.0, looks there too (moby#43111, moby#47436).
 * - Rootless Docker: `$XDG_CONFIG_HOME/docker/plugins`.
 * - Podman: `[engine.volume_plugins]` in `/etc/containers/containers.conf.d`, and rootless also in the user's folder.
 *
 * @param socket absolute path of the plugin's socket
 */
export function registrationPlaces(
  socket: string,
  home: string,
  environment: NodeJS.ProcessEnv,
): readonly RegistrationPlace[] {
  const config =
    environment["XDG_CONFIG_HOME"]?.startsWith("/") === true
      ? environment["XDG_CONFIG_HOME"]
      : join(home, ".config");
  const docker = { line: `unix://${socket}`, content: `unix://${socket}\n` };
  const podmanLine = `${BRAND.folder} = ${JSON.stringify(socket)}`;
  const podman = {
    line: podmanLine,
    content: `# Written by ${BRAND.command} docker register.\n[engine.volume_plugins]\n${podmanLine}\n`,
  };
  const spec = `${BRAND.folder}.spec`;
  const part = `${BRAND.folder}.conf`;
  return [
    {
      engine: "docker",
      path: join(environment[DOCKER_VARIABLE] || DOCKER_PLUGINS, spec),
      isSystem: true,
      ...docker,
    },
    { engine: "docker-rootless", path: join(config, "docker/plugins", spec), isSystem: false, ...docker },
    {
      engine: "podman",
      path: join(environment[PODMAN_VARIABLE] || PODMAN_CONFIG, part),
      isSystem: true,
      ...podman,
    },
    {
      engine: "podman-rootless",
      path: join(config, "containers/containers.conf.d", part),
      isSystem: false,
      ...podman,
    },
  ];
}

/** Sockets of the API of engines that this user may have, absolute. */
export function engineSockets(
  runtimeFolder: string | undefined,
  environment: NodeJS.ProcessEnv,
): readonly string[] {
  const [, given] = /^unix:\/\/(\/.+)$/.exec(environment["DOCKER_HOST"] ?? "") ?? [];
  const own =
    runtimeFolder === undefined
      ? []
      : [join(runtimeFolder, "docker.sock"), join(runtimeFolder, "podman/podman.sock")];
  return [
    ...new Set([
      ...(given === undefined ? [] : [given]),
      "/var/run/docker.sock",
      ...own,
      "/run/podman/podman.sock",
    ]),
  ];
}
