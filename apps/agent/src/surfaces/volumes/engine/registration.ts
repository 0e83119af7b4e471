import { open } from "node:fs/promises";
import { systemCode } from "@devplat/base";
import { BRAND } from "../../../brand.ts";
import type { Registration } from "../../../docker-view.ts";
import type { RegistrationPlace } from "./engine-places.ts";

/** A registration has a few lines; in bytes. */
const MAX_BYTES = 4096;
/** The line of Podman's configuration that names the socket. */
const PODMAN_LINE = new RegExp(`^\\s*${BRAND.folder}\\s*=\\s*"(.*)"\\s*$`, "m");

/** The state of a registration. */
export async function readRegistration({ engine, path, line }: RegistrationPlace): Promise<Registration> {
  const text = await readStart(path);
  const found = text === undefined ? undefined : namedIn(engine, text);
  const state = found === undefined ? "absent" : found === line ? "agrees" : "names a different socket";
  return { engine, path, expected: line, state };
}

/**
 * The registrations that there are. If there is none and the plugin is on, the file that Docker reads.
 * @param places in the order of the status
 */
export async function readRegistrations(
  places: readonly RegistrationPlace[],
  isEnabled: boolean,
): Promise<readonly Registration[]> {
  const all = await Promise.all(places.map(readRegistration));
  const found = all.filter(({ state }) => state !== "absent");
  return found.length === 0 && isEnabled ? all.slice(0, 1) : found;
}

/** The line that names a socket; undefined if the file has none for this plugin. */
function namedIn(engine: Registration["engine"], text: string): string | undefined {
  if (engine.startsWith("docker")) return text.split("\n", 1)[0]?.trim() ?? "";
  const [, socket] = PODMAN_LINE.exec(text) ?? [];
  return socket === undefined ? undefined : `${BRAND.folder} = "${socket}"`;
}

/** Undefined if there is no file. Empty for a file that cannot be read, which then names no socket of this program. */
async function readStart(path: string): Promise<string | undefined> {
  try {
    await using handle = await open(path, "r");
    const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(MAX_BYTES) });
    return buffer.toString("utf8", 0, bytesRead);
  } catch (error) {
    return ["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "") ? undefined : "";
  }
}
