import { ConfigError } from "@devplat/config";
import { visibleJson } from "@devplat/base/terminal";
import type { Host } from "../../host.ts";
import { AgentError, publicMessage } from "../../errors.ts";
import { askDaemon, type ReportedStatus } from "../../surfaces/socket/daemon-status.ts";
import { apiSocketPath } from "../../surfaces/socket/places.ts";
import type { RuleStatus } from "../../status.ts";
import { statusOf } from "../../sync/rule-state.ts";
import { StateFile } from "../../sync/state.ts";
import { daemonLine, ruleLines } from "./status-text.ts";

/** Whether an error says that there is no configuration that can be used. */
export function isConfigFault(error: unknown): error is AgentError | ConfigError {
  if (error instanceof ConfigError) return true;
  return error instanceof AgentError && ["not_configured", "config_refused"].includes(error.code);
}

/**
 * Status while the configuration cannot be used. The daemon continues with the one that it has read before,
 * and the rules are as the last cycle left them. Undefined if there is neither a daemon nor a last cycle.
 */
export async function statusWithoutConfig(
  { places }: Host,
  fault: AgentError | ConfigError,
  asJson: boolean,
): Promise<string | undefined> {
  const { document } = await StateFile.peek(places.state);
  // The configured path of the API socket is not known: only the default path can be tried.
  const seen = await askDaemon(places, apiSocketPath(places));
  if (seen === undefined && document.last_cycle_at === null) return undefined;
  const rules = Object.fromEntries(
    Object.entries(document.rules).map(([name, record]) => [name, statusOf(record)]),
  );
  const sync = seen?.sync ?? {
    state: document.stale_since === null ? "idle" : "stale",
    stale_since: document.stale_since,
    last_cycle_at: document.last_cycle_at,
    next_cycle_at: null,
    events: "polling",
  };
  if (asJson) {
    const config = { sources: [], problems: [publicMessage(fault)], reload_needed: [] };
    const found = { daemon: { running: seen !== undefined }, ...seen, sync, rules, config };
    return `${visibleJson(found, 2)}\n`;
  }
  return textOf(seen, sync, document.stale_since, rules);
}

function textOf(
  seen: ReportedStatus | undefined,
  sync: NonNullable<ReportedStatus["sync"]>,
  staleSince: string | null,
  rules: Readonly<Record<string, RuleStatus>>,
): string {
  const daemon = { running: seen !== undefined };
  const lines = [
    `Configuration:  cannot be used${seen === undefined ? "" : "; the daemon continues with the one that it has read before"}`,
    ...daemonLine({ daemon, uptime_seconds: seen?.uptime_seconds ?? 0, sync }),
    `Last sync:      ${sync.last_cycle_at ?? "never"}${staleSince === null ? "" : `, stale since ${staleSince}`}`,
    "",
    ...ruleLines(rules),
  ];
  return `${lines.join("\n")}\n`;
}
