import type { Clock } from "@devplat/base";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { IntervalGroup } from "../../../interval-group.ts";

/** How often the memory and the descriptors of each process are looked at, in milliseconds. */
const CHECK_MS = 15_000;
/** One forward needs 10 MB and a descriptor for each connection, of which the peer socket takes 32. */
const MAX_MEMORY_KB = 128 * 1024;
const MAX_DESCRIPTORS = 256;

/** Notices an ssh that takes too much of this host. */
export class ProcessLimits {
  readonly #group: IntervalGroup;

  constructor(clock: Pick<Clock, "sleep">) {
    this.#group = new IntervalGroup(CHECK_MS, clock);
  }

  /**
   * @param exceeded called with the reason while the process exceeds a limit
   * @returns ends the watch. Call it at the end of the process, because another one may get its id
   */
  add(pid: number, exceeded: (reason: string) => void): () => void {
    return this.#group.add(() => {
      const reason = excessOf(pid);
      if (reason !== undefined) exceeded(reason);
    });
  }
}

/**
 * The limit that a process exceeds; undefined also where that cannot be seen. The kernel answers from memory, so waiting
 * for a thread would cost more than the read.
 */
function excessOf(pid: number): string | undefined {
  try {
    const memory = Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
    if (memory > MAX_MEMORY_KB) return `ssh took more than ${MAX_MEMORY_KB / 1024} MB of memory`;
    if (descriptorsOf(pid) > MAX_DESCRIPTORS) return `ssh opened more than ${MAX_DESCRIPTORS} descriptors`;
    return undefined;
  } catch {
    return undefined;
  }
}

/** The size of the folder is the number of open descriptors since Linux 6.2, and 0 before (proc_pid_fd(5)). */
function descriptorsOf(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  return statSync(folder).size || readdirSync(folder).length;
}
