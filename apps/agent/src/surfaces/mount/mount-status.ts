import { realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { BRAND } from "../../brand.ts";
import type { Places } from "../../agent-files/places.ts";
import type { Config } from "../../config/schema.ts";
import { expandHome } from "../../config/sections/rule.ts";
import type { FuseStatus } from "../../status.ts";
import { isOwnMount, mountAt, readMounts, type MountIdentity } from "./device/mountinfo.ts";

/** Marks of the daemon's mounts in the kernel's table. */
export function mountIdentity(): MountIdentity {
  return { source: BRAND.folder, subtype: BRAND.command, uid: process.geteuid?.() ?? 0 };
}

/** Absolute path of `fuse.mountpoint`. */
export function mountpointOf({ fuse }: Config, { home }: Pick<Places, "home">): string {
  return expandHome(fuse.mountpoint, home);
}

/** Path of the mount helper's socket. */
export function mountHelperSocket({ runtime }: Pick<Places, "runtime">): string {
  return join(runtime, "mount.sock");
}

/** Status of the mount; undefined while the section is off. */
export async function fuseStatus(
  config: Config,
  places: Pick<Places, "home">,
): Promise<FuseStatus | undefined> {
  const { fuse } = config;
  if (!fuse.enabled) return undefined;
  const mountpoint = mountpointOf(config, places);
  return {
    mountpoint,
    access: fuse.read_write ? "read-write" : "read-only",
    layout: fuse.layout,
    cache_ttl_seconds: fuse.cache_ttl / 1000,
    mounted: await isMounted(mountpoint),
  };
}

/** Whether the kernel has a mount of this daemon there. Never asks the mount itself, which may hang. */
export async function isMounted(mountpoint: string): Promise<boolean> {
  if (process.platform !== "linux") return false;
  const folder = await realpath(dirname(mountpoint)).catch(() => dirname(mountpoint));
  const found = mountAt(await readMounts().catch(() => []), join(folder, basename(mountpoint)));
  return found !== undefined && isOwnMount(found, mountIdentity());
}
