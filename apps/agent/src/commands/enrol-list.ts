import { printJson, printText, tableLines } from "@devplat/base/terminal";
import type { RunCommand } from "./command.ts";
import { withEnrolments } from "./enrolment-session.ts";

/** Every configured enrolment and how it stands. */
export const run: RunCommand = (invocation) =>
  withEnrolments(invocation, async (runner, signal) => {
    await runner.look(signal);
    const enrolments = runner.list();
    if (invocation.options["json"] === true) {
      printJson({ enrolments });
      return 0;
    }
    const rows = enrolments.map(({ key, engine, state, status, description }) => [
      key,
      engine,
      state === "skipped" ? "skipped" : status,
      description,
    ]);
    const lines =
      rows.length === 0 ? ["No enrolments."] : tableLines(["KEY", "ENGINE", "STATUS", "DESCRIPTION"], rows);
    printText(`${lines.join("\n")}\n`);
    return 0;
  });
