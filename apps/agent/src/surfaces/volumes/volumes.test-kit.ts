import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { silentLogger, systemClock } from "@devplat/base";
import type { SecretStore } from "@devplat/secret-store";
import { folderStand } from "../../secrets/folder/secret-folder.test-kit.ts";
import { VolumesFolder } from "./content/volumes-folder.ts";
import { VolumeState } from "./volume-state.ts";
import type { VolumeSettings } from "./volume.ts";
import { Volumes } from "./volumes.ts";

export const ROOTFUL = { isRootful: true };
export const ROOTLESS = { isRootful: false };

/** Volumes over a store whose events are followed, as the daemon has them. */
export interface VolumesTestStand extends AsyncDisposable {
  readonly volumes: Volumes;
  /** Folder with the state file, and the files of volumes below `volumes`. */
  readonly folder: string;
  readonly settings: { -readonly [Key in keyof VolumeSettings]: VolumeSettings[Key] };
  /** Volumes that have told of a change of their files. */
  readonly refreshed: string[];
  /** Tells the volumes that a secret has changed, as the daemon does after `agent secrets`. */
  announce(): void;
  /** Changes who is signed in. */
  signIn(authenticated: boolean): void;
  /** Ends these volumes as the end of the daemon does, and starts others. @param bootId default: the same start of the host */
  restart(bootId?: string): Promise<void>;
}

/** @param options events: whether the store's events are followed, default true */
export async function volumesStand(
  store: SecretStore,
  { events = true, settings: given = {} }: { events?: boolean; settings?: Partial<VolumeSettings> } = {},
): Promise<VolumesTestStand> {
  const folder = await mkdtemp("/dev/shm/volumes-test-");
  const secrets = folderStand(store, { events, ttlMs: 600_000 });
  const settings = { cacheTtlMs: 60_000, paths: ["demo/"], ...given };
  const refreshed: string[] = [];
  const listeners: (() => void)[] = [];
  let authenticated = true;
  const begin = async (bootId: string): Promise<Volumes> => {
    const path = join(folder, "volumes.json");
    const state = await VolumeState.open({
      path,
      folder: join(folder, "volumes"),
      bootId,
      logger: silentLogger,
    });
    const made = new Volumes({
      state,
      folder: new VolumesFolder(state.folder),
      secrets: secrets.secrets,
      changes: secrets.watch,
      signIn: {
        state: () => ({ authenticated, source: "file", info: undefined, reason: null }),
        onChange: (listener) => void listeners.push(listener),
      },
      settings: () => settings,
      onRefreshed: (volume) => void refreshed.push(volume),
      clock: systemClock,
      logger: silentLogger,
    });
    await made.start();
    return made;
  };
  let volumes = await begin("first");
  return {
    get volumes() {
      return volumes;
    },
    folder,
    settings,
    refreshed,
    announce: () => secrets.watch.announce({ path: "demo/a", kind: "written" }),
    signIn: (now) => {
      authenticated = now;
      for (const listener of listeners) listener();
    },
    restart: async (bootId = "first") => {
      await volumes.stop();
      volumes = await begin(bootId);
    },
    [Symbol.asyncDispose]: async () => {
      await volumes.stop();
      await secrets[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
