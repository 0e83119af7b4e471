import { noteText, printText } from "@devplat/base/terminal";
import { UsageError, type Program } from "./command.ts";
import { parseCommandLine, type Parsed } from "./parse.ts";

/**
 * Runs the command that the arguments name, and prints its error. Returns the exit code: 0 done, 1 failed, `usageExit` for a
 * wrong command line.
 */
export async function runProgram<Flags>(
  program: Program<Flags>,
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<number> {
  let parsed: Parsed<Flags>;
  try {
    parsed = parseCommandLine(program, args, environment);
  } catch (error) {
    if (error instanceof UsageError) return printUsageError(program, error);
    throw error;
  }
  if (parsed.kind === "help") {
    const { helpText } = await import("./help.ts");
    printText(helpText(program, parsed.command, parsed.group));
    return 0;
  }
  try {
    const run = await parsed.command.load();
    return (await run(parsed.invocation)) ?? 0;
  } catch (error) {
    if (error instanceof UsageError) return printUsageError(program, error);
    const { reportFailure } = await import("./report.ts");
    return reportFailure(program, error, parsed.invocation.flags);
  }
}

function printUsageError<Flags>(
  { name, usageExit = 1 }: Program<Flags>,
  { message, about }: UsageError,
): number {
  const help = about === "" ? "--help' lists the commands." : `${about} --help' tells more.`;
  noteText(`${name}: ${message}\n'${name} ${help}\n`);
  return usageExit;
}
