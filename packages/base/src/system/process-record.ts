import { readFile, readlink } from "node:fs/promises";
import { basename } from "node:path";

/** Longest command line that is read, in characters. */
const MAX_COMMAND_CHARS = 4096;

/** A running process (proc_pid_stat(5)). */
export interface ProcessRecord {
  readonly pid: number;
  /** In clock ticks after the start of the system. With the PID it names one process. */
  readonly startTime: string;
  /** Name that the process has itself chosen. */
  readonly name: string;
  /** Path of its program; undefined where it cannot be seen. */
  readonly program: string | undefined;
  readonly parent: number;
  /** PID of the session's leader. */
  readonly session: number;
  /** It is not in the foreground of a terminal. */
  readonly isBackground: boolean;
  /** It has ended, and its parent has not asked for its exit code yet. */
  readonly isZombie: boolean;
}

/** @returns undefined when there is no such process, or the system has no such list */
export async function readProcess(pid: number): Promise<ProcessRecord | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    const program = await readlink(`/proc/${pid}/exe`).catch(() => undefined);
    return parseStat(pid, stat, program?.replace(/ \(deleted\)$/, ""));
  } catch {
    return undefined;
  }
}

/** Whether this is still the same process. */
export async function isStillRunning({
  pid,
  startTime,
}: Pick<ProcessRecord, "pid" | "startTime">): Promise<boolean> {
  const found = await readProcess(pid);
  return found?.startTime === startTime && !found.isZombie;
}

/** Words of the command line, which the process can change itself. */
export async function commandWords(pid: number): Promise<string[]> {
  const text = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  return text
    .slice(0, MAX_COMMAND_CHARS)
    .split("\0")
    .filter((word) => word !== "");
}

/** Name of the program, or the one that the process has chosen. */
export function programName({ program, name }: Pick<ProcessRecord, "program" | "name">): string {
  return program === undefined ? name : basename(program);
}

/** @param stat content of `/proc/PID/stat` */
export function parseStat(pid: number, stat: string, program: string | undefined): ProcessRecord | undefined {
  // The name is in parentheses and may itself contain some.
  const [open, close] = [stat.indexOf("("), stat.lastIndexOf(")")];
  if (open === -1 || close < open) return undefined;
  // After the name: state, parent, group, session, terminal, foreground group of the terminal, and others.
  const fields = stat.slice(close + 2).split(" ");
  const [parent, group, session, terminal, foreground] = fields.slice(1, 6).map(Number);
  const startTime = fields[19];
  if (parent === undefined || session === undefined || startTime === undefined) return undefined;
  if (!/^\d+$/.test(startTime)) return undefined;
  return {
    pid,
    startTime,
    name: stat.slice(open + 1, close),
    program,
    parent,
    session,
    isBackground: terminal === 0 || foreground !== group,
    isZombie: fields[0] === "Z",
  };
}
