import { readFileSync, writeFileSync } from "node:fs";

/** Largest resident set of a process since its start or the last {@link resetPeak}, in MB (10^6 bytes). Linux only. */
export function peakMegabytes(pid: number): number {
  const peak = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return (Number(peak?.[1] ?? 0) * 1024) / 1e6;
}

/** Resident set of a process in MB (10^6 bytes). Linux only. */
export function residentMegabytes(pid: number): number {
  const size = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return (Number(size?.[1] ?? 0) * 1024) / 1e6;
}

/** Makes the peak start again from the present size, so that a phase's own peak can be read. */
export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

/** Proportional set size of a process in MB (10^6 bytes): its own pages, and its share of those that others use. */
export function proportionalMegabytes(pid: number): number {
  const size = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"));
  return (Number(size?.[1] ?? 0) * 1024) / 1e6;
}
