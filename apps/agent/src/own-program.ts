import { isSea } from "node:sea";

/** First argument of the process that serves the mount. Only the daemon starts it. */
export const MOUNT_SERVER = "mount-server";

/** Engine flags for a daemon that mostly sleeps. They save memory, and make code several times slower. */
const SLEEPER_FLAGS: ReadonlySet<string> = new Set(["--no-opt", "--no-maglev"]);

/**
 * The command that mounts for a daemon whose service forbids new privileges. Only a service unit starts it, so no list of commands
 * has it.
 */
export const MOUNT_HELPER = "mount-helper";

/**
 * The command line that runs this program again with other arguments.
 *
 * @returns program and arguments
 */
export function ownProgram(args: readonly string[]): string[] {
  const { execPath, execArgv, argv } = process;
  return isSea() ? [execPath, ...args] : [execPath, ...execArgv, argv[1] ?? "", ...args];
}

/** As {@link ownProgram}, for a process that has to answer fast: its code is compiled with optimizations. */
export function ownFastProgram(args: readonly string[]): string[] {
  return ownProgram(args).filter((each) => !SLEEPER_FLAGS.has(each));
}
