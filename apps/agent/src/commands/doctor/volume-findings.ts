import type { Findings } from "@devplat/cli/findings";
import { BRAND } from "../../brand.ts";
import { volumePlaces, volumeRegistrations } from "../../assemble/volume-places.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { Host } from "../../host.ts";
import { requestOverSocket } from "../../peers/socket-request.ts";
import { readDaemonStatus } from "../../surfaces/socket/daemon-status.ts";

/** The plugin answers from memory. In milliseconds. */
const TIMEOUT_MS = 5000;

/** Calls the volume plugin, and looks at its registrations, its folder and each volume. Nothing while it is off. */
export async function examineVolumes(
  host: Host,
  { config }: LoadedConfig,
  findings: Findings,
): Promise<void> {
  if (!config.docker.enabled) return;
  const { socket, folder } = volumePlaces(host.places, config);
  await findings.attempt("volume plugin", async () => {
    const path = "/Plugin.Activate";
    const { status } = await requestOverSocket({
      socketPath: socket,
      path,
      method: "POST",
      timeoutMs: TIMEOUT_MS,
    });
    return status === 200 ? `answers on ${socket}` : { fault: `${socket} answers with status ${status}` };
  });
  for (const { engine, path, state, expected } of await volumeRegistrations(host, config)) {
    await findings.attempt(`registration for ${engine}`, async () => {
      if (state === "agrees") return path;
      const problem = state === "absent" ? `${path} does not exist` : `${path} does not hold ${expected}`;
      const command = `${BRAND.command} docker register${path.startsWith("/etc/") ? " --system" : ""}`;
      return { warning: `${problem}; run '${command}'` };
    });
  }
  await findings.attempt(`folder ${folder}`, async () => {
    const { VolumesFolder } = await import("../../surfaces/volumes/content/volumes-folder.ts");
    const isInMemory = await new VolumesFolder(folder).isInMemory().catch(() => undefined);
    if (isInMemory === undefined) return "not made yet";
    return isInMemory
      ? "in memory"
      : { warning: "is on a disk, and so are the values; set docker.volume_dir to a folder on a tmpfs" };
  });
  const { docker } = await readDaemonStatus(host.places, config);
  for (const { name, error } of docker?.volumes ?? []) {
    await findings.attempt(`volume ${name}`, async () => (error === null ? "" : { fault: error }));
  }
}
