import type { ChildProcess } from "node:child_process";
import { systemCode } from "../errors.ts";

/** Whether a process with this id runs, of this user or of another one. */
export function isProcess(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return systemCode(error) === "EPERM";
  }
}

/**
 * Sends a signal to a process.
 * @returns false if the process has ended
 * @throws system error `EPERM` if the process runs as another user
 */
export function signalProcess(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    if (systemCode(error) === "ESRCH") return false;
    throw error;
  }
}

/**
 * Sends a signal to a child and everything in its process group, of which the child is the leader (`detached` of `spawn`).
 * Nothing happens after the end of the group. Windows has no groups: only the child is ended there.
 */
export function signalGroup(child: Pick<ChildProcess, "pid" | "kill">, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  if (process.platform === "win32") {
    child.kill(signal);
    return;
  }
  try {
    signalProcess(-child.pid, signal);
  } catch (error) {
    // macOS, for a group whose processes have ended and were not waited for.
    if (systemCode(error) !== "EPERM") throw error;
  }
}
