import { isDeepStrictEqual } from "node:util";
import type { Clock, Logger } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import type { DockerStatus } from "../../docker-view.ts";
import { ChangeListeners } from "../../change-listeners.ts";
import type { SignIn } from "../../auth/sign-in.ts";
import type { CachedSecrets } from "../../secrets/folder/cached-secrets.ts";
import type { StoreChanges } from "../../secrets/folder/store-changes.ts";
import type { VolumesFolder } from "./content/volumes-folder.ts";
import { VolumeError } from "./errors/volume-error.ts";
import { checkAllowed } from "./options/allowed-paths.ts";
import { checkVolumeName, parseVolumeOptions } from "./options/volume-options.ts";
import type { Caller, VolumeDriver, VolumeEntry } from "./plugin/plugin-protocol.ts";
import { Volume, unknownVolume, type VolumeSettings } from "./volume.ts";
import type { VolumeRecord, VolumeState } from "./volume-state.ts";

/** Each has a loop of its own. */
const MAX_VOLUMES = 1000;

export interface VolumesParts {
  readonly state: VolumeState;
  readonly folder: VolumesFolder;
  readonly secrets: CachedSecrets;
  readonly changes: StoreChanges;
  readonly signIn: Pick<SignIn, "state" | "onChange">;
  readonly settings: () => VolumeSettings;
  /** Is told when the files of a mounted volume have changed, outside of every lock. */
  readonly onRefreshed: (volume: string) => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** All volumes. */
export class Volumes implements VolumeDriver {
  readonly #parts: VolumesParts;
  readonly #volumes = new Map<string, Volume>();
  readonly #listeners = new ChangeListeners();
  /** Creates and removes one after another. */
  readonly #turns = new Serializer();
  #isRunning = false;

  constructor(parts: VolumesParts) {
    this.#parts = parts;
    parts.signIn.onChange(() => {
      if (this.#isRunning && this.#isSignedIn())
        for (const volume of this.#volumes.values()) volume.retryNow();
    });
  }

  /** Takes the volumes up again as they were, and removes files that no container has. @throws AgentError `place_refused` */
  async start(): Promise<void> {
    const { state, folder, logger } = this.#parts;
    await folder.prepare();
    for (const name of state.names()) {
      const record = state.get(name);
      if (record === undefined) continue;
      try {
        this.#volumes.set(name, this.#make(name, record));
      } catch (error) {
        logger.error({ volume: name, err: error }, "volume cannot be used any more");
      }
    }
    if (!state.isRebuilt) {
      const mounted = state.names().filter((name) => (state.get(name)?.mounts.length ?? 0) > 0);
      for (const [volume, error] of await folder.wipeExcept(new Set(mounted))) {
        logger.warn({ volume, err: error }, "files of a volume could not be removed");
      }
    }
    if (!(await folder.isInMemory())) {
      logger.warn(
        { folder: folder.path },
        "files of volumes are on a disk; set docker.volume_dir to a folder on a tmpfs",
      );
    }
    this.#isRunning = true;
    for (const volume of this.#volumes.values()) volume.resume();
  }

  /** Ends following the store. Files and mounts stay for the containers that have them. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    await Promise.all([...this.#volumes.values()].map((volume) => volume.stop()));
  }

  /** Calls back after each change of {@link status} until the signal fires. */
  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
  }

  /** Takes up a changed configuration. */
  reconcile(): void {
    for (const volume of this.#volumes.values()) volume.reconcile();
  }

  status(): DockerStatus["volumes"] {
    const { changes } = this.#parts;
    const refresh = changes.isProbing ? "probing" : changes.state === "connected" ? "events" : "poll";
    return this.#sorted().map((volume) => ({
      name: volume.name,
      mounts: volume.mountCount,
      secrets: volume.condition.secretCount,
      paths: [...volume.options.secrets],
      layout: volume.options.layout,
      refresh,
      error: volume.condition.problem ?? null,
    }));
  }

  async create(
    name: string,
    options: Readonly<Record<string, string>>,
    { isRootful }: Caller,
  ): Promise<void> {
    checkVolumeName(name);
    const parsed = parseVolumeOptions(options);
    checkAllowed(parsed.secrets, this.#parts.settings().paths, isRootful);
    await this.#turns.run(async () => {
      const known = this.#volumes.get(name);
      if (known !== undefined) {
        if (isDeepStrictEqual(known.options, parsed)) return;
        throw new VolumeError("volume_exists", `the volume ${name} exists with other options`, {
          hint: "Remove it first, or choose another name.",
        });
      }
      if (this.#volumes.size >= MAX_VOLUMES) {
        throw new VolumeError("volume_exists", `there are ${MAX_VOLUMES} volumes already`, {
          hint: "Remove the ones that are not used any more.",
        });
      }
      const record = { options: { ...options }, rootful: isRootful, mounts: [], content: null };
      await this.#parts.state.set(name, record);
      this.#volumes.set(name, this.#make(name, record));
    });
    this.#listeners.changed();
  }

  async remove(name: string): Promise<void> {
    await this.#turns.run(async () => {
      await this.#volumes.get(name)?.remove();
      this.#volumes.delete(name);
    });
    this.#listeners.changed();
  }

  async mount(name: string, id: string, caller: Caller): Promise<string> {
    const volume = this.#find(name);
    await volume.mount(id, caller);
    return volume.content.path;
  }

  async unmount(name: string, id: string): Promise<void> {
    await this.#volumes.get(name)?.unmount(id);
  }

  get(name: string): VolumeEntry {
    return { name, mountpoint: this.#find(name).content.path };
  }

  list(): readonly VolumeEntry[] {
    return this.#sorted().map(({ name, content }) => ({ name, mountpoint: content.path }));
  }

  /** Drops all mounts of a volume whose engine has forgotten them. @returns their number @throws VolumeError, AgentError */
  async release(name: string): Promise<number> {
    return await this.#find(name).release();
  }

  #find(name: string): Volume {
    const volume = this.#volumes.get(name);
    if (volume === undefined) throw unknownVolume(name);
    return volume;
  }

  #make(name: string, record: VolumeRecord): Volume {
    checkVolumeName(name);
    return new Volume(
      { ...this.#parts, isSignedIn: () => this.#isSignedIn(), onChange: () => this.#listeners.changed() },
      {
        name,
        options: parseVolumeOptions(record.options),
        content: this.#parts.folder.content(name),
        record,
      },
    );
  }

  #sorted(): Volume[] {
    return [...this.#volumes.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  #isSignedIn(): boolean {
    return this.#parts.signIn.state().authenticated;
  }
}
