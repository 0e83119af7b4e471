import { readdirSync, readFileSync } from "node:fs";
import { cpuSecondsOf } from "@devplat/testkit";

/**
 * CPU seconds of a process while `work` runs, in steps below a microsecond where no thread of it ends (schedstat of each
 * thread, sched-stats.rst of the kernel); otherwise in steps of 10 ms.
 */
export async function cpuDuring(pid: number, work: () => Promise<unknown>): Promise<number> {
  const coarse = cpuSecondsOf(pid).own;
  const before = threadsOf(pid);
  await work();
  const after = threadsOf(pid);
  if ([...before.keys()].some((thread) => !after.has(thread))) return cpuSecondsOf(pid).own - coarse;
  const sum = (threads: ReadonlyMap<string, number>): number =>
    [...threads.values()].reduce((total, nanoseconds) => total + nanoseconds, 0);
  return (sum(after) - sum(before)) / 1e9;
}

function threadsOf(pid: number): Map<string, number> {
  const found = new Map<string, number>();
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try {
      const [nanoseconds] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ");
      found.set(thread, Number(nanoseconds));
    } catch {
      // The thread ended after the list was read.
    }
  }
  return found;
}
