import { readFileSync } from "node:fs";

/** Kernel clock ticks per second in /proc; 100 on every Linux that we meet (`getconf CLK_TCK`). */
const TICKS_PER_SECOND = 100;

/** CPU seconds and peak memory of a process, from /proc (Linux only). */
export interface ProcessUsage {
  /** User and system time of the process itself. */
  readonly own: number;
  /** User and system time of its children that have ended and been waited for. */
  readonly children: number;
  /** Largest resident set so far (VmHWM), in MB (10^6 bytes). */
  readonly peakMb: number;
}

export function processUsage(pid: number): ProcessUsage {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The command name may hold blanks and parentheses: the fields start after its last ")".
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = (index: number): number => Number(fields[index]) / TICKS_PER_SECOND;
  const peak = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return {
    own: ticks(11) + ticks(12),
    children: ticks(13) + ticks(14),
    peakMb: (Number(peak?.[1] ?? 0) * 1024) / 1e6,
  };
}

/** Makes VmHWM start again from the present size, so that a phase's own peak can be read. Needs to be root or the owner. */
export async function resetPeak(pid: number): Promise<void> {
  const { writeFile } = await import("node:fs/promises");
  await writeFile(`/proc/${pid}/clear_refs`, "5");
}
