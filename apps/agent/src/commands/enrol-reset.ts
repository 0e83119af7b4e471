import { printLine } from "@devplat/base/terminal";
import type { RunCommand } from "./command.ts";
import { withEnrolments } from "./enrolment-session.ts";

/** Takes back a skip, so that the enrolment is asked for again. */
export const run: RunCommand = (invocation) =>
  withEnrolments(invocation, async (runner, signal, tell) => {
    const [key = ""] = invocation.positionals;
    await runner.look(signal);
    // Unknown ones are refused in a dry run too.
    runner.prompt(key);
    if (!invocation.flags.dryRun) {
      await runner.reset(key);
      tell();
    }
    printLine(`${invocation.flags.dryRun ? "would reset" : "reset"} ${key}`);
    return 0;
  });
