/** One row of the table in docs/interop.md, and the name of a test. */
export interface Row {
  readonly client: string;
  readonly does: string;
  /**
   * Behaviour of the service when a second client sends the same request:
   * - `hit`: answers every fetch from its own data, with no fetch from the code host
   * - `passthrough`: hands the request to the code host, because the client does not speak protocol v2
   * - `no fetch`: is asked for references only
   */
  readonly second: "hit" | "passthrough" | "no fetch";
  /** Remarks for the reader. */
  readonly note?: string;
}

/** A row's test, by the name that the table gives it. */
export function titleOf({ client, does, second }: Row): string {
  return `${client}: ${does}: ${second}`;
}

/** The rows as Markdown. */
export function tableOf(rows: readonly Row[]): string {
  const lines = rows.map(({ client, does, second, note = "" }) => {
    return `| ${[client, does.replaceAll("|", "\\|"), second, note].join(" | ")} |`.replace("|  |", "| |");
  });
  return ["| Client | Does | Second time | Note |", "|---|---|---|---|", ...lines].join("\n");
}
