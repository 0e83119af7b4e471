import { readlinkSync } from "node:fs";
import { constants, setPriority } from "node:os";

/**
 * Lowers the priority of the calling worker thread, so that background work does not slow down serving: on a busy CPU it
 * gets a tenth of what serving gets. The lowest priority gets a seventieth: a small fill then took minutes on a machine
 * that other programs kept busy, and requests wait for fills. Linux only, where each thread has a priority; on other
 * systems it does nothing.
 */
export function lowerThreadPriority(): void {
  try {
    const thread = Number(readlinkSync("/proc/thread-self").split("/").at(-1));
    // The main thread has the number of the process. It serves, so its priority stays.
    if (Number.isSafeInteger(thread) && thread !== process.pid) {
      setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL);
    }
  } catch {
    // The thread works at the normal priority, too.
  }
}
