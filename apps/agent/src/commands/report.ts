import { AppError } from "@devplat/base";
import { noteText } from "@devplat/base/terminal";
import { BRAND } from "../brand.ts";

/**
 * Tells a failed command's user what is wrong and what to do.
 * @param verbose with the stack of a fault of ours
 */
export function reportFailure(error: unknown, verbose: boolean): void {
  if (error instanceof AppError) {
    const hint = error.hint === undefined ? "" : `${error.hint}\n`;
    noteText(`${BRAND.command}: ${error.message}\n${hint}`);
    return;
  }
  // Not one of our errors: a fault in the program. Its message may quote what it was working on.
  const name = error instanceof Error ? error.name : typeof error;
  noteText(`${BRAND.command}: internal error (${name}); --log-level debug shows where\n`);
  if (verbose && error instanceof Error) noteText(`${stackWithoutMessage(error)}\n`);
}

/** Where it happened, without the message. */
function stackWithoutMessage(error: Error): string {
  return (error.stack ?? "")
    .split("\n")
    .filter((line) => /^\s+at /.test(line))
    .join("\n");
}
