import { printJson, printText, tableLines } from "@devplat/base/terminal";
import { factsOf } from "../assemble-store.ts";
import { StateFile } from "../sync/state.ts";
import { StatusReport } from "../sync/status-report.ts";
import type { RunCommand } from "./command.ts";
import { openContext } from "./context.ts";

/** Every rule as configured, with the state that the last cycle left. */
export const run: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  const state = await StateFile.peek(host.places.state);
  const rules = new StatusReport(factsOf(host, loaded), host.clock).rules(
    loaded.config.rules,
    state.document,
  );
  if (invocation.options["json"] === true) {
    printJson({ rules });
    return 0;
  }
  const rows = rules.map(({ name, state: now, key, target, last_synced: synced, error }) => [
    name,
    now,
    key,
    `${target.path} (${target.format})`,
    synced ?? "never",
    error ?? "",
  ]);
  const lines =
    rows.length === 0
      ? ["No rules."]
      : tableLines(["RULE", "STATE", "KEY", "TARGET", "LAST SYNCED", "ERROR"], rows);
  printText(`${lines.join("\n")}\n`);
  return 0;
};
