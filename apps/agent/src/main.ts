import { dropUnreadOutput, noteText, printText } from "@devplat/base/terminal";
import { BRAND } from "./brand.ts";
import { parseCommandLine, UsageError, type Parsed } from "./commands/parse.ts";
import { COMMANDS } from "./commands/table.ts";

// The arguments may hold a secret (`secrets put KEY field=value`) and every user of the host can read them: they are
// overwritten before anything else is done.
process.title = BRAND.command;

dropUnreadOutput(BRAND.command);

// No await here: the release bundle is a CommonJS module.
void main(process.argv.slice(2)).then((code) => (process.exitCode = code));

/** Gives the exit code: 0 success, 1 error. */
async function main(args: readonly string[]): Promise<number> {
  let parsed: Parsed;
  try {
    parsed = parseCommandLine(args, COMMANDS, process.env);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    noteText(`${BRAND.command}: ${error.message}\n${error.hint}\n`);
    return 1;
  }
  if (parsed.kind === "help") {
    const { helpText } = await import("./commands/help.ts");
    printText(helpText(COMMANDS, parsed.command, parsed.group));
    return 0;
  }
  try {
    const { run } = await parsed.command.load();
    return await run(parsed.invocation);
  } catch (error) {
    const { reportFailure } = await import("./commands/report.ts");
    reportFailure(error, parsed.invocation.flags.logLevel === "debug");
    return 1;
  }
}
