import { join } from "node:path";
import type { StoreParts } from "./store.ts";
import { volumePlaces } from "./volume-places.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Host } from "../host.ts";
import { CachedSecrets } from "../secrets/folder/cached-secrets.ts";
import type { StoreChanges } from "../secrets/folder/store-changes.ts";
import { activatedSockets } from "../surfaces/listening/activation.ts";
import { VolumesFolder } from "../surfaces/volumes/content/volumes-folder.ts";
import { engineSockets } from "../surfaces/volumes/engine/engine-places.ts";
import { OnChange } from "../surfaces/volumes/engine/on-change.ts";
import { PluginServer } from "../surfaces/volumes/plugin/plugin-server.ts";
import { VolumeState } from "../surfaces/volumes/volume-state.ts";
import type { BuiltVolumes } from "../surfaces/volumes/volumes-on-demand.ts";
import { Volumes } from "../surfaces/volumes/volumes.ts";

/** A change that the store reports ends this time, and so does each poll. In milliseconds. */
const VERSIONS_TTL_MS = 10 * 60_000;
const STATE_FILE = "volumes.json";

/** The parts of a daemon that its volume plugin uses. */
export interface VolumesFoundation extends Pick<StoreParts, "store" | "signIn"> {
  /** The configuration as it applies now. */
  readonly current: () => LoadedConfig;
  readonly changes: StoreChanges;
}

/** Builds the volume plugin. Only a daemon with `docker.enabled` loads this file. */
export async function assembleVolumes(host: Host, parts: VolumesFoundation): Promise<BuiltVolumes> {
  const { places, environment, clock, logger } = host;
  const { current } = parts;
  const { socket, folder } = volumePlaces(places, current().config);
  const state = await VolumeState.open({ path: join(places.state, STATE_FILE), folder, logger });
  const secrets = new CachedSecrets({ ...parts, clock }, { ttlMs: VERSIONS_TTL_MS });
  const onChange = new OnChange({
    isEnabled: () => current().config.docker.on_change,
    sockets: engineSockets(environment["XDG_RUNTIME_DIR"], environment),
    idle: () => server.idle(),
    logger,
  });
  const volumes = new Volumes({
    ...parts,
    state,
    folder: new VolumesFolder(state.folder),
    secrets,
    settings: () => {
      const { cache_ttl: cacheTtlMs, paths } = current().config.docker;
      return { cacheTtlMs, paths };
    },
    onRefreshed: (volume) => onChange.notify(volume),
    clock,
    logger,
  });
  const descriptor = activatedSockets(environment, process.pid).get("docker");
  const server = new PluginServer({ path: socket, descriptor, driver: volumes, logger });
  return {
    volumes,
    folder: state.folder,
    places: `${socket} ${folder}`,
    start: async () => {
      await volumes.start();
      try {
        await server.start();
      } catch (error) {
        await volumes.stop();
        throw error;
      }
    },
    stop: async () => {
      await server.stop();
      await volumes.stop();
      secrets.close();
    },
  };
}
