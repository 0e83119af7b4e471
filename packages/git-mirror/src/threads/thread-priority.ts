import { readlinkSync } from "node:fs";
import { constants, setPriority } from "node:os";

/**
 * Gives the calling worker thread the lower share of a busy CPU, so that work behind the scenes does not slow serving
 * down: a tenth of what serving gets. Not the lowest, a seventieth: on a machine that other programs keep busy a small
 * fill took minutes then, and who asks for what it brings waits for it. Linux only, where a thread has a priority of
 * its own; elsewhere it does nothing.
 */
export function lowerThreadPriority(): void {
  try {
    const thread = Number(readlinkSync("/proc/thread-self").split("/").at(-1));
    // The main thread has the process's number: that one serves.
    if (Number.isSafeInteger(thread) && thread !== process.pid) {
      setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL);
    }
  } catch {
    // A wish, not a need.
  }
}
