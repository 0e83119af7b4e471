import type { AgentStatus, RuleStatus } from "../../../status.ts";
import { readiness } from "./health.ts";
import { liveStatus } from "./status-document.ts";

const STATES: readonly RuleStatus["state"][] = ["ok", "pending", "failed", "missing", "paused"];

/**
 * The state in the Prometheus text format, version 0.0.4. Every figure is a gauge read from memory.
 *
 * @param openStreams live streams of pages and API
 */
export function metricsText(status: AgentStatus, openStreams: number): string {
  const rules = Object.entries(status.rules);
  const enabled = status.remotes.filter((remote) => remote.enabled);
  const lines = [
    ...gauge("agent_info", "Version of the daemon.", [[`{version="${escapeLabel(status.version)}"}`, 1]]),
    ...gauge("agent_uptime_seconds", "Seconds since the daemon started.", [["", status.uptime_seconds]]),
    ...gauge("agent_authenticated", "1 if the daemon holds a store token.", [
      ["", Number(status.authenticated)],
    ]),
    ...gauge("agent_connected", "1 if the secrets store answers.", [
      ["", Number(liveStatus(status).connected)],
    ]),
    ...gauge("agent_stale", "1 if files are kept although the store does not answer.", [
      ["", Number(readiness(status) === "stale")],
    ]),
    ...gauge("agent_last_cycle_timestamp_seconds", "End of the last completed sync cycle.", [
      ["", epochSeconds(status.sync.last_cycle_at)],
    ]),
    ...gauge("agent_event_streams", "Open live streams.", [["", openStreams]]),
    ...gauge(
      "agent_rules",
      "Sync rules by state.",
      STATES.map((state) => [`{state="${state}"}`, rules.filter(([, rule]) => rule.state === state).length]),
    ),
    ...gauge(
      "agent_rule_last_synced_timestamp_seconds",
      "Last time that the rule's target was in step with the store.",
      rules.map(([name, rule]) => [`{rule="${escapeLabel(name)}"}`, epochSeconds(rule.last_synced)]),
    ),
    ...gauge(
      "agent_rule_consecutive_failures",
      "Failed tries of the rule since it last succeeded.",
      rules.map(([name, rule]) => [`{rule="${escapeLabel(name)}"}`, rule.consecutive_failures]),
    ),
    ...gauge(
      "agent_ssh_forward_up",
      "1 if the managed SSH forward to the host is connected.",
      enabled.map(({ host, state }) => [`{host="${escapeLabel(host)}"}`, Number(state === "connected")]),
    ),
    ...gauge(
      "agent_ssh_forward_reconnects",
      "Times that the managed SSH forward came back since it was enabled.",
      enabled.map(({ host, reconnects }) => [`{host="${escapeLabel(host)}"}`, reconnects]),
    ),
    ...gauge(
      "agent_ssh_tokens_lent",
      "Store tokens that the remote host has now.",
      enabled.map(({ host, tokens }) => [`{host="${escapeLabel(host)}"}`, tokens.lent.length]),
    ),
  ];
  return `${lines.join("\n")}\n`;
}

/** Samples without a value (never synced) are left out. */
function gauge(
  name: string,
  help: string,
  samples: readonly [labels: string, value: number | undefined][],
): string[] {
  const present = samples.filter(([, value]) => value !== undefined);
  if (present.length === 0) return [];
  const head = [`# HELP ${name} ${help}`, `# TYPE ${name} gauge`];
  return [...head, ...present.map(([labels, value]) => `${name}${labels} ${value}`)];
}

function epochSeconds(time: string | null): number | undefined {
  return time === null ? undefined : Date.parse(time) / 1000;
}

function escapeLabel(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
