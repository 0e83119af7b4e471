import { run, type Finished } from "@devplat/testkit";

/** `nobody` on every Linux; owns nothing and runs nothing else. */
export const NOBODY_UID = 65_534;

/** The words to put before a command so that it runs as another user: by root directly, else by sudo without a password. */
export const asNobody: readonly string[] =
  process.geteuid?.() === 0
    ? ["setpriv", `--reuid=${NOBODY_UID}`, `--regid=${NOBODY_UID}`, "--clear-groups"]
    : ["sudo", "--non-interactive", "--user", "nobody"];

/** Runs a command as another user of this host. */
export async function runAsNobody(command: string, args: readonly string[]): Promise<Finished> {
  const [program = "", ...words] = asNobody;
  const finished = await run(program, [...words, command, ...args], { cwd: "/" });
  if (/a password is required|sudo: not found|Operation not permitted/.test(finished.stderr)) {
    throw new Error(
      "these tests need a second user: run them as root, or allow sudo to nobody without a password",
    );
  }
  return finished;
}
