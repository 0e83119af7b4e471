import type { Logger } from "@devplat/base";
import { ChangeListeners } from "../../change-listeners.ts";
import type { Config } from "../../config/schema.ts";
import type { DockerStatus, Registration } from "../../docker-view.ts";
import { publicMessage } from "../../errors.ts";
import type { Surface, SurfaceStatus } from "../surface.ts";
import type { Volumes } from "./volumes.ts";

/** The plugin with its parts, built. */
export interface BuiltVolumes {
  readonly volumes: Pick<Volumes, "status" | "onChange" | "release" | "reconcile">;
  /** Folder of the files. It is another one than configured while containers have volumes there. */
  readonly folder: string;
  /** Text that changes when the plugin has to be built again. */
  readonly places: string;
  /** Serves until {@link stop}. @throws AgentError */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface VolumesOnDemandParts {
  /** The configuration as it applies now. */
  readonly config: () => Config;
  /** Loads the code. */
  readonly build: () => Promise<BuiltVolumes>;
  /** Sockets and folders of a configuration, as in {@link BuiltVolumes.places}. */
  readonly placesOf: (config: Config) => { readonly socket: string; readonly folder: string };
  readonly registrations: (config: Config) => Promise<readonly Registration[]>;
  readonly logger: Logger;
}

/** Container volumes: their code is loaded when `docker.enabled` is set. A plugin that cannot serve never ends the daemon. */
export class VolumesOnDemand implements Surface {
  readonly #parts: VolumesOnDemandParts;
  readonly #listeners = new ChangeListeners();
  #built: BuiltVolumes | undefined;
  #ended = new AbortController();
  #failure: string | undefined;
  #registrations: readonly Registration[] = [];
  #isLooking = false;

  constructor(parts: VolumesOnDemandParts) {
    this.#parts = parts;
  }

  /** The volumes; undefined while the section is off or the plugin cannot serve. */
  get volumes(): BuiltVolumes["volumes"] | undefined {
    return this.#built?.volumes;
  }

  async start(): Promise<void> {
    if (this.#parts.config().docker.enabled) await this.#turnOn();
    await this.#look();
  }

  async reconcile(config: Config): Promise<void> {
    const { socket, folder } = this.#parts.placesOf(config);
    const isSame = this.#built?.places === `${socket} ${folder}`;
    if (!config.docker.enabled || !isSame || this.#canMove(folder)) await this.#turnOff();
    if (config.docker.enabled && this.#built === undefined) await this.#turnOn();
    else this.#built?.volumes.reconcile();
    await this.#look();
    this.#listeners.changed();
  }

  /** The section is left out while it is off and no registration sends an engine to its socket. */
  status(): SurfaceStatus {
    const config = this.#parts.config();
    const { enabled } = config.docker;
    void this.#look();
    if (!enabled && this.#registrations.length === 0) return {};
    const { socket, folder } = this.#parts.placesOf(config);
    const used = this.#built?.folder ?? folder;
    const docker: DockerStatus = {
      enabled,
      socket,
      volume_dir: used,
      next_volume_dir: used === folder ? null : folder,
      registrations: [...this.#registrations],
      volumes: this.#built?.volumes.status() ?? [],
      error: this.#failure ?? null,
    };
    return { docker };
  }

  async stop(): Promise<void> {
    await this.#turnOff();
  }

  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
  }

  /** Whether another folder is configured than the one in use, and no container has a volume any more. */
  #canMove(folder: string): boolean {
    const built = this.#built;
    if (built === undefined || built.folder === folder) return false;
    return built.volumes.status().every(({ mounts }) => mounts === 0);
  }

  async #turnOn(): Promise<void> {
    try {
      const built = await this.#parts.build();
      await built.start();
      this.#built = built;
      this.#ended = new AbortController();
      this.#failure = undefined;
      built.volumes.onChange(() => this.#listeners.changed(), this.#ended.signal);
    } catch (error) {
      this.#failure = publicMessage(error);
      this.#parts.logger.error({ err: error }, "volume plugin does not serve");
    }
  }

  async #turnOff(): Promise<void> {
    const built = this.#built;
    this.#built = undefined;
    this.#failure = undefined;
    this.#ended.abort();
    await built?.stop();
  }

  /** Reads the registrations, which other programs change. Never throws. */
  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const before = JSON.stringify(this.#registrations);
    this.#registrations = await this.#parts.registrations(this.#parts.config()).catch(() => []);
    this.#isLooking = false;
    if (JSON.stringify(this.#registrations) !== before) this.#listeners.changed();
  }
}
