import { lstat, mkdir, readdir, realpath, statfs } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { systemCode } from "@devplat/base";
import { AgentError } from "../../../errors.ts";
import { isOwnMount, mountAt, readMounts, type MountIdentity, type MountedFilesystem } from "./mountinfo.ts";
import { unmount, type Unmounting } from "./unmount.ts";

const FOLDER_MODE = 0o700;
/** Mounts on top of each other at one place that are removed. */
const MAX_STACKED = 32;
/** A mount whose server lives answers immediately. In milliseconds. */
const PROBE_MS = 2000;
/** Errors of a mount whose server has ended, or was ended while it was asked. */
const STALE_CODES: ReadonlySet<string | undefined> = new Set(["ENOTCONN", "ECONNABORTED"]);

/** Result of {@link removeOwnMounts}. */
export interface RemovedMounts {
  readonly removed: number;
  /** Bind mounts of the removed ones at other places. Only root can remove them. */
  readonly remaining: readonly string[];
}

/**
 * Path of the mountpoint without symbolic links. Never looks into the folder itself: a mount there may hang.
 *
 * @throws AgentError `mount_refused` if the parent folder does not exist
 */
export async function resolveMountpoint(path: string): Promise<string> {
  try {
    return join(await realpath(dirname(path)), basename(path));
  } catch (error) {
    throw refused(path, `its parent folder cannot be found (${systemCode(error)})`, "Create it.");
  }
}

/**
 * Makes the folder if there is none, and checks that a mount there hides nothing.
 *
 * @param path from {@link resolveMountpoint}
 * @throws AgentError `mount_refused` for a mount, a file, a link, a folder with content or of another user
 */
export async function prepareMountpoint(path: string): Promise<void> {
  const present = mountAt(await readMounts(), path);
  if (present !== undefined) throw foreign(path, present);
  try {
    await mkdir(path, { mode: FOLDER_MODE });
    return;
  } catch (error) {
    if (systemCode(error) !== "EEXIST")
      throw refused(path, `it cannot be created (${systemCode(error)})`, "Choose another fuse.mountpoint.");
  }
  const found = await lstat(path);
  if (found.isSymbolicLink())
    throw refused(path, "it is a symbolic link", "Set fuse.mountpoint to its target.");
  if (!found.isDirectory())
    throw refused(path, "it is not a folder", "Move it, or choose another fuse.mountpoint.");
  if (found.uid !== process.geteuid?.())
    throw refused(path, "it belongs to another user", "Choose another fuse.mountpoint.");
  if ((await readdir(path)).length > 0)
    throw refused(path, "it is not empty", "Move its content, or choose another fuse.mountpoint.");
}

/**
 * Removes what earlier runs of the daemon have left mounted at a path, and bind mounts of it on top. They may be in use.
 *
 * @param path from {@link resolveMountpoint}
 * @param by removes each mount. Default: this process does
 * @throws AgentError `mount_refused` for a mount of another program on top, `mount_failed`
 */
export async function removeOwnMounts(
  path: string,
  identity: MountIdentity,
  by: Unmounting = { unmount },
): Promise<RemovedMounts> {
  const devices = new Set<string>();
  for (let removed = 0; ; removed++) {
    const mounts = await readMounts();
    const top = mountAt(mounts, path);
    if (top === undefined) {
      const remaining = mounts.filter(({ device }) => devices.has(device));
      return { removed, remaining: remaining.map(({ mountpoint }) => mountpoint) };
    }
    if (!isOwnMount(top, identity)) throw foreign(path, top);
    if (removed >= MAX_STACKED)
      throw refused(path, `more than ${MAX_STACKED} mounts are there`, "Remove them with umount.");
    devices.add(top.device);
    await by.unmount(path, { lazy: true });
  }
}

/**
 * - `stale`: the mount's server has ended.
 * - `alive`: it answers.
 * - `hanging`: it does not answer within two seconds.
 */
export type MountHealth = "stale" | "alive" | "hanging";

/** Asks the server of a mount for its size, as the kernel can have its attributes in a cache. Never blocks the thread. */
export async function probeMount(path: string): Promise<MountHealth> {
  const { promise: late, resolve } = Promise.withResolvers<MountHealth>();
  const timer = setTimeout(() => resolve("hanging"), PROBE_MS);
  const answer = statfs(path).then(
    (): MountHealth => "alive",
    (error: unknown): MountHealth => (STALE_CODES.has(systemCode(error)) ? "stale" : "alive"),
  );
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

function foreign(path: string, { type, source }: MountedFilesystem): AgentError {
  return refused(
    path,
    `another filesystem is mounted there (${source}, type ${type})`,
    "Unmount it, or choose another fuse.mountpoint.",
  );
}

function refused(path: string, reason: string, hint: string): AgentError {
  return new AgentError("mount_refused", `cannot mount at ${path}: ${reason}`, { hint });
}
