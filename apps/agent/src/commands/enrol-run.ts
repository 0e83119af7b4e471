import { printLine } from "@devplat/base/terminal";
import { AgentError } from "../errors.ts";
import type { RunCommand } from "./command.ts";
import { enrolAtTerminal } from "./enrolment-conversation.ts";
import { withEnrolments } from "./enrolment-session.ts";

/** Runs one enrolment on the terminal. */
export const run: RunCommand = (invocation) =>
  withEnrolments(invocation, async (runner, signal, _tell, host) => {
    const [key = ""] = invocation.positionals;
    await runner.look(signal);
    const current = runner.list().find((enrolment) => enrolment.key === key);
    if (current?.state === "complete" && current.interactive && invocation.options["again"] !== true) {
      throw new AgentError("enrolment_state", `the enrolment ${key} is complete`, {
        hint: "Use --again to replace the credential.",
      });
    }
    if (invocation.flags.dryRun) {
      runner.prompt(key);
      printLine(`the enrolment ${key} would run`);
      return 0;
    }
    // Given up while the store was looked at.
    if (signal.aborted) throw new AgentError("enrolment_cancelled", "the enrolment was ended");
    await enrolAtTerminal(runner, key, host.environment, signal);
    printLine(`stored ${key}`);
    return 0;
  });
