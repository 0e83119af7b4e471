import { printLine } from "@devplat/base/terminal";
import type { RunCommand } from "./command.ts";
import { withEnrolments } from "./enrolment-session.ts";

/** Marks an enrolment as dealt with, although there is no credential. */
export const run: RunCommand = (invocation) =>
  withEnrolments(invocation, async (runner, signal, tell) => {
    const [key = ""] = invocation.positionals;
    await runner.look(signal);
    // Unknown ones are refused in a dry run too.
    runner.prompt(key);
    if (!invocation.flags.dryRun) {
      await runner.skip(key);
      tell();
    }
    printLine(`${invocation.flags.dryRun ? "would skip" : "skipped"} ${key}`);
    return 0;
  });
