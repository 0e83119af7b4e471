import { messageOf, retry, type Clock, type Logger } from "@devplat/base";
import { AgentError } from "../../errors.ts";
import type { MountIdentity } from "./device/mountinfo.ts";
import { removeOwnMounts, resolveMountpoint } from "./device/mountpoint.ts";
import { findMounter } from "./device/mounter.ts";
import type { Unmounter } from "./filesystem-mount.ts";
import { isMounted } from "./mount-status.ts";

/** Time for which files may stay open before the mount is hidden, in milliseconds. */
const BUSY_LIMIT_MS = 5000;
const RETRY_MS = 250;
/** Maximum tries to remove a mount. `fusermount3` can be killed, as each process. */
const MAX_TRIES = 4;

export interface LazyUnmounterParts {
  readonly identity: MountIdentity;
  /** Socket of the mount helper. */
  readonly helper: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Removes mounts of this daemon. While files are open it waits, then it hides the mount, and open files go on. */
export class LazyUnmounter implements Unmounter {
  readonly #parts: LazyUnmounterParts;

  constructor(parts: LazyUnmounterParts) {
    this.#parts = parts;
  }

  async unmount(mountpoint: string): Promise<void> {
    const { clock, logger, helper } = this.#parts;
    const mounter = await findMounter(helper);
    const end = clock.monotonic() + BUSY_LIMIT_MS;
    let failures = 0;
    try {
      const path = await resolveMountpoint(mountpoint);
      while (await isMounted(path)) {
        const lazy = clock.monotonic() >= end;
        try {
          await mounter.unmount(path, { lazy });
        } catch (error) {
          if (lazy && ++failures >= MAX_TRIES) throw error;
          await clock.sleep(RETRY_MS);
        }
      }
    } catch (error) {
      logger.warn({ reason: messageOf(error) }, "the filesystem could not be unmounted");
    }
  }

  async remove(mountpoint: string, lazy: boolean): Promise<void> {
    const path = await resolveMountpoint(mountpoint);
    const mounter = await findMounter(this.#parts.helper);
    // A mount can be below another one.
    while (await isMounted(path)) await mounter.unmount(path, { lazy });
  }

  async removeStale(mountpoint: string): Promise<void> {
    const { identity, logger, clock, helper } = this.#parts;
    const mounter = await findMounter(helper);
    try {
      const path = await resolveMountpoint(mountpoint);
      const { removed, remaining } = await retry(() => removeOwnMounts(path, identity, mounter), {
        attempts: MAX_TRIES,
        firstMs: RETRY_MS,
        clock,
        retryable: (error) => error instanceof AgentError && error.code === "mount_failed",
      });
      if (removed > 0) logger.info({ removed }, "a mount of an earlier run was removed");
      if (remaining.length > 0) logger.warn({ remaining }, "bind mounts of an earlier run are left");
    } catch (error) {
      // The mount server refuses a mount of another program by name.
      logger.debug({ reason: messageOf(error) }, "no mount of an earlier run was removed");
    }
  }
}
