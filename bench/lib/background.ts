/**
 * Shell script that runs its arguments with CPU time that nothing else needs. The kernel compares the priorities of programs
 * only within a session (sched_autogroup), so the priority of the session is lowered, too.
 */
const SCRIPT = 'echo 19 > /proc/self/autogroup; exec chrt --idle 0 "$0" "$@"';

/** The same command in the background. It must be the first of its session, as with `run`. Linux only. */
export function inBackground(command: string, args: readonly string[]): [string, string[]] {
  return ["sh", ["-c", SCRIPT, command, ...args]];
}
