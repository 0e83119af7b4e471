import { flagOf, printResult, printTable } from "@devplat/cli";
import { printLine } from "@devplat/base/terminal";
import { factsOf } from "../assemble/store.ts";
import { StateFile } from "../sync/state.ts";
import { StatusReport } from "../sync/status-report.ts";
import type { Invocation, RunCommand } from "./common/command.ts";
import { openContext } from "./common/context.ts";
import { AgentError } from "../errors.ts";
import { PausedRules } from "../sync/paused-rules.ts";
import { findRule } from "./common/find-rule.ts";
import { signalDaemon } from "./common/daemon-process.ts";

/** Every rule as configured, with the state that the last cycle left. */
export const list: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  const state = await StateFile.peek(host.places.state);
  const rules = new StatusReport(factsOf(host, loaded), host.clock).rules(
    loaded.config.rules,
    state.document,
    await new PausedRules(host.places.state).read(),
  );
  printResult(invocation.options, { rules }, () =>
    printTable(
      ["RULE", "STATE", "KEY", "TARGET", "LAST SYNCED", "ERROR"],
      rules.map(({ name, state: now, key, target, last_synced: synced, error }) => [
        name,
        now,
        key,
        `${target.path} (${target.format}${target.mounted ? ", on the mount" : ""})`,
        synced ?? "never",
        error ?? "",
      ]),
      "No rules.",
    ),
  );
  return 0;
};

/** Stops a rule from writing until it is resumed; over restarts too. */
export const pause: RunCommand = (invocation) => setPaused(invocation, true);

/** Lets a paused rule go on. */
export const resume: RunCommand = (invocation) => setPaused(invocation, false);

/** Pauses or resumes a rule, and notifies the running daemon. */
async function setPaused(invocation: Invocation, paused: boolean): Promise<number> {
  const { host, loaded } = await openContext(invocation);
  const rule = findRule(loaded, invocation.positionals[0] ?? "");
  if (!paused && rule.paused) {
    throw new AgentError("usage", `rule '${rule.name}' is paused by the configuration`, {
      hint: "Remove its paused: true there.",
    });
  }
  const word = paused ? "paused" : "resumed";
  const tell = (outcome: string, line: string): void =>
    printResult(invocation.options, { rule: rule.name, outcome }, () => printLine(line));
  if (invocation.flags.dryRun) {
    tell(`would be ${word}`, `rule '${rule.name}' would be ${word}`);
    return 0;
  }
  const changed = await new PausedRules(host.places.state).set(rule.name, paused);
  // Without a daemon the next sync sees it.
  if (changed) await signalDaemon(host);
  if (changed) tell(word, `${word} '${rule.name}'`);
  else tell("unchanged", `'${rule.name}' was ${word} already`);
  return 0;
}

/** Prints the change of one rule's file by the next cycle, with masked values. */
export const diff: RunCommand = async (invocation) => {
  const { options } = invocation;
  const { host, loaded } = await openContext(invocation);
  const { name } = findRule(loaded, invocation.positionals[0] ?? "");
  const { dryRun } = await import("./sync/dry-run.ts");
  return dryRun(host, loaded, {
    reveal: flagOf(options, "reveal"),
    only: name,
    json: flagOf(options, "json"),
  });
};
