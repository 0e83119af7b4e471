import { closeSync } from "node:fs";
import { AgentError } from "../../../errors.ts";
import { mount } from "../device/mount.ts";
import {
  isOwnMount,
  mountAt,
  readMounts,
  type MountIdentity,
  type MountedFilesystem,
} from "../device/mountinfo.ts";
import { prepareMountpoint, probeMount, resolveMountpoint } from "../device/mountpoint.ts";
import { unmount } from "../device/unmount.ts";

export interface HelperMountsParts {
  /** Absolute path of the folder where the daemon may mount, as it is configured now. */
  readonly mountpoint: () => Promise<string>;
  readonly identity: MountIdentity;
}

/** The mounts that the mount helper makes and removes: those of this user's daemon at the configured mountpoint. */
export class HelperMounts {
  readonly #parts: HelperMountsParts;

  constructor(parts: HelperMountsParts) {
    this.#parts = parts;
  }

  /** @returns descriptor of the device. The caller must close it @throws AgentError `mount_refused` | `mount_failed` */
  async mount(path: string, maxReadBytes: number): Promise<number> {
    await this.#check(path);
    await prepareMountpoint(path);
    const { source, subtype } = this.#parts.identity;
    const before = await this.#own();
    const device = await mount(path, { source, subtype, maxReadBytes });
    const made = (await this.#own()).filter((each) => !before.some((known) => isSameMount(each, known)));
    // A folder above it can be swapped for a link between the check and the mount.
    if (made.some(({ mountpoint }) => mountpoint === path)) return device;
    closeSync(device);
    // Without its device this mount is stale. Mounts of other daemons of this user are not.
    for (const { mountpoint } of made)
      if ((await probeMount(mountpoint)) === "stale") await unmount(mountpoint, { lazy: true });
    throw new AgentError(
      "mount_refused",
      `cannot mount at ${path}: a folder above it was replaced by a link`,
      { hint: "Find the program that did it." },
    );
  }

  /** @throws AgentError `mount_refused` | `mount_failed` */
  async unmount(path: string, lazy: boolean): Promise<void> {
    await this.#check(path);
    const top = mountAt(await readMounts(), path);
    if (top === undefined || !isOwnMount(top, this.#parts.identity))
      throw new AgentError("mount_refused", `the daemon has no mount at ${path}`);
    await unmount(path, { lazy });
  }

  async #check(path: string): Promise<void> {
    const allowed = await resolveMountpoint(await this.#parts.mountpoint());
    if (path === allowed) return;
    throw new AgentError("mount_refused", `the mount helper mounts only at ${allowed}`, {
      hint: "Its configuration says so, as fuse.mountpoint.",
    });
  }

  async #own(): ReturnType<typeof readMounts> {
    return (await readMounts()).filter((each) => isOwnMount(each, this.#parts.identity));
  }
}

/** The kernel gives the id of a mount that is gone to the next one, which may be that of another daemon elsewhere. */
function isSameMount(one: MountedFilesystem, other: MountedFilesystem): boolean {
  return one.id === other.id && one.mountpoint === other.mountpoint;
}
