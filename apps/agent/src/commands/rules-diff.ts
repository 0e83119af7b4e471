import type { RunCommand } from "./command.ts";
import { openContext } from "./context.ts";
import { dryRun } from "./dry-run.ts";
import { findRule } from "./rules-pause.ts";

/** What the next cycle would change in the file of one rule, every value masked. */
export const run: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  const { name } = findRule(loaded, invocation.positionals[0] ?? "");
  const { reveal, json } = invocation.options;
  return dryRun(host, loaded, { reveal: reveal === true, only: name, json: json === true });
};
