import { BRAND } from "../../../brand.ts";
import { AgentError } from "../../../errors.ts";
import { runFusermount } from "./fusermount.ts";
import { lastErrorName, systemCalls } from "./system-calls.ts";

const MNT_DETACH = 2;
const UMOUNT_NOFOLLOW = 8;

/** Options of {@link unmount}. */
export interface UnmountOptions {
  /** Also while files on it are open: it disappears now, and ends with the last of them. */
  readonly lazy: boolean;
}

/** Removes mounts as {@link unmount} does. */
export interface Unmounting {
  unmount(path: string, options: UnmountOptions): Promise<void>;
}

/**
 * Removes the topmost mount at a path: root by umount2(2), other users by `fusermount3`.
 *
 * @throws AgentError `mount_failed`, for example when it is in use
 */
export async function unmount(path: string, { lazy }: UnmountOptions): Promise<void> {
  if (process.geteuid?.() !== 0) {
    await runFusermount(lazy ? ["-u", "-z"] : ["-u"], path);
    return;
  }
  if (systemCalls().umount2(path, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) === 0) return;
  const reason = lastErrorName();
  const hint = `Close the programs that use it, or unmount it lazily: '${BRAND.command} unmount --lazy', or the checkbox of the page.`;
  throw new AgentError(
    "mount_failed",
    `cannot unmount ${path}: ${reason}`,
    reason === "EBUSY" ? { hint } : {},
  );
}
