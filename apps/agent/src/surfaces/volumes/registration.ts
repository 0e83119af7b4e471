import { systemCode } from "@devplat/base";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { BRAND } from "../../brand.ts";
import type { Places } from "../../agent-files/places.ts";
import type { Config } from "../../config/schema.ts";
import type { DockerStatus } from "../../status.ts";
import { expandHome } from "../../config/sections/rule.ts";

/** Folder in which Docker looks for plugins that register themselves by a file (its documentation, "Plugin discovery"). */
const PLUGIN_FOLDER = "/etc/docker/plugins";
/** Names another folder, for tests and for engines that were built with one. */
const FOLDER_VARIABLE = `${BRAND.environmentPrefix}_DOCKER_PLUGINS`;
/** A registration is one line; in bytes. */
const MAX_BYTES = 4096;

/**
 * Status of container volumes; undefined where there is nothing to tell: the section is off, and no
 * registration file sends Docker to a socket of this program that is not served.
 */
export async function dockerStatus(
  { docker }: Config,
  places: Pick<Places, "home" | "runtime">,
  environment: NodeJS.ProcessEnv,
): Promise<DockerStatus | undefined> {
  const socket =
    docker.socket === undefined
      ? join(places.runtime, "docker.sock")
      : expandHome(docker.socket, places.home);
  const expected = `unix://${socket}`;
  const path = join(environment[FOLDER_VARIABLE] || PLUGIN_FOLDER, `${BRAND.folder}.spec`);
  const found = await firstLine(path);
  if (found === undefined && !docker.enabled) return undefined;
  const state = found === undefined ? "absent" : found === expected ? "agrees" : "names a different socket";
  return { enabled: docker.enabled, socket, registration: { path, expected, state } };
}

/** Undefined if there is no file; empty for a file that cannot be read, which then names no socket of this program. */
async function firstLine(path: string): Promise<string | undefined> {
  try {
    await using handle = await open(path, "r");
    const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(MAX_BYTES) });
    return buffer.toString("utf8", 0, bytesRead).split("\n", 1)[0]?.trim() ?? "";
  } catch (error) {
    return ["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "") ? undefined : "";
  }
}
