import { printJson, printLine, tableLines } from "@devplat/base/terminal";
import type { Options } from "./command.ts";
import { flagOf } from "./options.ts";

/** Prints the result of a command: `value` as JSON with `--json`, else by `print`. */
export function printResult(options: Options, value: unknown, print: () => void): void {
  if (flagOf(options, "json")) printJson(value);
  else print();
}

/** Prints columns under headings. @param empty line to print if there are no rows. Default: the headings alone */
export function printTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  empty?: string,
): void {
  const lines = rows.length === 0 && empty !== undefined ? [empty] : tableLines(headings, rows);
  for (const line of lines) printLine(line);
}
