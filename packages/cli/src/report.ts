import { AppError, systemCode } from "@devplat/base";
import { noteText } from "@devplat/base/terminal";
import type { Program } from "./command.ts";

/** Prints the error of a failed command and its hint. @returns the exit code */
export function reportFailure<Flags>(program: Program<Flags>, error: unknown, flags: Flags): number {
  const print = (text: string): void =>
    noteText(`${program.name}: ${text.replaceAll("\n", `\n${program.name}: `)}\n`);
  if (error instanceof AppError) {
    print(error.message);
    if (error.hint !== undefined) noteText(`${error.hint}\n`);
    return program.usageCodes?.includes(error.code) === true ? (program.usageExit ?? 1) : 1;
  }
  if (isSystemError(error)) {
    print(error.message);
    return 1;
  }
  const missing = missingPackage(error);
  if (missing !== undefined) {
    print(`the package ${missing} is not installed`);
    noteText("Run 'npm ci' in the folder of this program's sources.\n");
    return 1;
  }
  // An internal error. Its message may quote data of the user.
  const name = error instanceof Error ? error.name : typeof error;
  const { isOn, hint } = program.debug;
  const isDebug = isOn(flags);
  print(`internal error (${name})${isDebug ? "" : `; ${hint}`}`);
  if (isDebug && error instanceof Error) noteText(`${stackWithoutMessage(error)}\n`);
  return 1;
}

/** Whether a system call failed. The message has its code, the call and the path. */
function isSystemError(error: unknown): error is Error {
  return error instanceof Error && systemCode(error) !== undefined && "syscall" in error;
}

/** Name of the package that an import did not find. Updated sources may need packages that are not installed yet. */
function missingPackage(error: unknown): string | undefined {
  if (!(error instanceof Error) || systemCode(error) !== "ERR_MODULE_NOT_FOUND") return undefined;
  return /^Cannot find package '([^']+)'/.exec(error.message)?.[1];
}

/** The stack without the message. */
function stackWithoutMessage(error: Error): string {
  return (error.stack ?? "")
    .split("\n")
    .filter((line) => /^\s+at /.test(line))
    .join("\n");
}
