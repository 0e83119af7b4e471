import { printJson, printLine, tableLines } from "@devplat/base/terminal";
import type { Options } from "./command.ts";
import { flagOf } from "./options.ts";

/** What a command found or did: as JSON with `--json`, else as `print` writes it. */
export function printResult(options: Options, value: unknown, print: () => void): void {
  if (flagOf(options, "json")) printJson(value);
  else print();
}

/** Columns under headings. @param empty the line that stands for no rows. Default: the headings alone */
export function printTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  empty?: string,
): void {
  const lines = rows.length === 0 && empty !== undefined ? [empty] : tableLines(headings, rows);
  for (const line of lines) printLine(line);
}
