import { printLine, tableLines } from "@devplat/base/terminal";

/** Columns under headings. */
export function printTable(headings: readonly string[], rows: readonly (readonly string[])[]): void {
  for (const line of tableLines(headings, rows)) printLine(line);
}
