import type { Logger } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import type { Config } from "../../config/schema.ts";
import { ChangeListeners } from "../../change-listeners.ts";
import { AgentError } from "../../errors.ts";
import type { FuseStatus } from "../../status.ts";
import type { Surface, SurfaceStatus } from "../surface.ts";
import type { FilesystemMount, MountState } from "./filesystem-mount.ts";
import type { MountControl } from "./mount-control.ts";

type Mount = Pick<FilesystemMount, keyof FilesystemMount>;

export interface MountSurfaceParts {
  /** Reports that rendered files may have other content. */
  readonly mounted: { onChange(listener: () => void, signal: AbortSignal): void };
  readonly config: () => Config;
  /** Loads the code, and builds the mount of the configuration as it is now. */
  readonly build: () => Promise<Mount>;
  /** Reads the configuration and the kernel. */
  readonly look: () => Promise<FuseStatus | undefined>;
  readonly logger: Logger;
}

/** Mounts while `fuse.enabled` is set. Only then the code of the mount is loaded. */
export class MountSurface implements Surface, MountControl {
  readonly #parts: MountSurfaceParts;
  readonly #listeners = new ChangeListeners();
  /** One action of a person or a reload at a time. */
  readonly #actions = new Serializer();
  /** Mounts that were unmounted while files were open. They serve those until they are closed. */
  readonly #hidden = new Set<Mount>();
  #mount: Mount | undefined;
  #ended = new AbortController();
  #seen: FuseStatus | undefined;
  /** Settings that need another mount. */
  #place = "";

  constructor(parts: MountSurfaceParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    await this.#actions.run(async () => {
      if (this.#parts.config().fuse.enabled) await this.#turnOn();
    });
  }

  async reconcile(config: Config): Promise<void> {
    await this.#actions.run(async () => {
      // A mountpoint that was refused may be usable now.
      const isRefused = this.#mount?.state.state === "refused";
      if (isRefused || !config.fuse.enabled || placeOf(config) !== this.#place) await this.#turnOff();
      if (this.#mount !== undefined) this.#mount.configure();
      else if (config.fuse.enabled) await this.#turnOn();
      await this.#look();
    });
  }

  async mount(): Promise<void> {
    await this.#actions.run(async () => {
      if (this.#mount?.state.state === "mounted") return;
      if (this.#mount?.state.state === "unmounted") this.#hide(this.#mount);
      else await this.#turnOff();
      await this.#turnOn();
      const state = this.#state();
      if (state?.state === "mounted") return;
      if (state?.state !== "refused")
        throw new AgentError(
          "mount_failed",
          (state && problemOf(state)) ?? "the filesystem could not be mounted",
        );
      throw new AgentError(
        "mount_failed",
        state.message,
        state.hint === undefined ? {} : { hint: state.hint },
      );
    });
  }

  async unmount(lazy: boolean): Promise<void> {
    await this.#actions.run(async () => {
      await this.#mount?.unmount(lazy);
      await this.#look();
    });
  }

  status(): SurfaceStatus {
    if (this.#seen === undefined || this.#mount === undefined) return {};
    const { state, report } = this.#mount;
    const fuse: FuseStatus = {
      ...this.#seen,
      state: state.state,
      problem: problemOf(state),
      omitted_names: report.omittedNames,
      unsaved: [...report.unsaved],
    };
    return { fuse };
  }

  /** Calls back after each change of its state until the signal fires. */
  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
  }

  async stop(): Promise<void> {
    await this.#actions.run(async () => {
      await this.#turnOff();
      for (const mount of this.#hidden) await mount.stop();
    });
  }

  async #turnOff(): Promise<void> {
    const mount = this.#mount;
    if (mount === undefined) return;
    this.#mount = undefined;
    this.#ended.abort();
    await mount.stop();
    this.#listeners.changed();
  }

  /** Leaves an unmounted mount to the files that are still open on it. */
  #hide(mount: Mount): void {
    this.#mount = undefined;
    this.#ended.abort();
    this.#hidden.add(mount);
    void mount.ended.then(() => this.#hidden.delete(mount));
  }

  #state(): MountState | undefined {
    return this.#mount?.state;
  }

  async #turnOn(): Promise<void> {
    const { build, config, logger } = this.#parts;
    if (process.platform !== "linux") {
      logger.error({}, "fuse.enabled has no effect: the filesystem mount works only on Linux");
      return;
    }
    try {
      this.#place = placeOf(config());
      const mount = await build();
      this.#mount = mount;
      this.#ended = new AbortController();
      this.#parts.mounted.onChange(() => mount.renderedChanged(), this.#ended.signal);
      mount.onChange(() => void this.#look(), this.#ended.signal);
      await mount.start();
    } catch (error) {
      logger.error({ err: error }, "the filesystem could not be mounted");
    }
    await this.#look();
  }

  async #look(): Promise<void> {
    this.#seen = await this.#parts.look();
    this.#listeners.changed();
  }
}

function problemOf(state: MountState): string | null {
  switch (state.state) {
    case "refused":
      return state.hint === undefined ? state.message : `${state.message}. ${state.hint}`;
    case "restarting":
      return state.reason;
    case "mounted":
      return state.problem ?? null;
    default:
      return null;
  }
}

function placeOf({ fuse }: Config): string {
  return `${fuse.read_write} ${fuse.mountpoint}`;
}
