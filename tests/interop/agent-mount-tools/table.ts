/** One row of a table in docs/agent/mount.md, and the name of a test. */
export interface Row {
  readonly tool: string;
  /** How the tool reads or saves. */
  readonly does: string;
  /** Result that the test proves. */
  readonly result: string;
}

/** A row's test, by the name that the table gives it. */
export function titleOf({ tool, does }: Row): string {
  return `${tool}: ${does}`;
}

/** The rows as Markdown. */
export function tableOf(rows: readonly Row[]): string {
  const lines = rows.map(({ tool, does, result }) => `| ${[tool, does, result].join(" | ")} |`);
  return ["| Tool | What it does | Result |", "|---|---|---|", ...lines].join("\n");
}
