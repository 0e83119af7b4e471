import { readFileSync } from "node:fs";

/** Processor seconds, user and system together. */
export interface CpuSeconds {
  /** The process itself, all threads. */
  readonly own: number;
  /** Its children that have ended and been waited for, with theirs in turn. */
  readonly children: number;
}

/** USER_HZ, which the kernel counts these fields in on every Linux architecture that Node runs on: 10 ms a tick. */
const TICKS_PER_SECOND = 100;

/** Reads what a process and its ended children used, from /proc/PID/stat (proc_pid_stat(5), Linux only). */
export function cpuSecondsOf(pid: number): CpuSeconds {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The second field is a name in parentheses that may hold spaces; utime is the 14th, so the 12th after it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11, 15).map(Number);
  return { own: (utime + stime) / TICKS_PER_SECOND, children: (cutime + cstime) / TICKS_PER_SECOND };
}
