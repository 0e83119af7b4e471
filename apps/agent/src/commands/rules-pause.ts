import { printLine } from "@devplat/base/terminal";
import type { Host } from "../host.ts";
import { BRAND } from "../brand.ts";
import type { LoadedConfig } from "../config/load.ts";
import { AgentError } from "../errors.ts";
import type { Rule } from "../config/rule.ts";
import { PausedRules } from "../sync/paused-rules.ts";
import type { Invocation, RunCommand } from "./command.ts";
import { openContext } from "./context.ts";
import { signalDaemon } from "./reload.ts";

/** Stops a rule from writing until it is resumed; over restarts too. */
export const run: RunCommand = (invocation) => setPaused(invocation, true);

/** Pauses a rule or lets it go on, and tells the running daemon. */
export async function setPaused(invocation: Invocation, paused: boolean): Promise<number> {
  const { host, loaded } = await openContext(invocation);
  const rule = findRule(loaded, invocation.positionals[0] ?? "");
  if (!paused && rule.paused) {
    throw new AgentError("usage", `rule '${rule.name}' is paused by the configuration`, {
      hint: "Remove its paused: true there.",
    });
  }
  const word = paused ? "paused" : "resumed";
  if (invocation.flags.dryRun) {
    printLine(`rule '${rule.name}' would be ${word}`);
    return 0;
  }
  const changed = await new PausedRules(host.places.state).set(rule.name, paused);
  if (changed) await tellDaemon(host);
  printLine(changed ? `${word} '${rule.name}'` : `'${rule.name}' was ${word} already`);
  return 0;
}

/** @throws AgentError `usage` */
export function findRule(loaded: LoadedConfig, name: string): Rule {
  const rule = loaded.config.rules.find((candidate) => candidate.name === name);
  if (rule !== undefined) return rule;
  throw new AgentError("usage", `there is no rule '${name}'`, {
    hint: `'${BRAND.command} rules list' shows the rules.`,
  });
}

async function tellDaemon(host: Host): Promise<void> {
  // Without a daemon the next sync sees it.
  await signalDaemon(host);
}
