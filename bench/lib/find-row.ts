import type { StoredReport } from "./report.ts";
import type { Row } from "./row.ts";

export type Results = ReadonlyMap<string, StoredReport>;

/** A row of a stored result. @param use of the row, for the error */
export function findRow(results: Results, result: string, pattern: RegExp, use: string): Row {
  const row = results.get(result)?.rows.find(({ what }) => pattern.test(what));
  if (row === undefined) throw new Error(`Cannot ${use}: ${result} has no row ${pattern.source}.`);
  return row;
}
