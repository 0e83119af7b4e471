import type { AgentStatus, RuleStatus } from "../../../status.ts";
import { readiness } from "./health.ts";
import { liveStatus } from "./status-document.ts";

const STATES: readonly RuleStatus["state"][] = ["ok", "pending", "failed", "missing", "paused"];

type Samples = readonly [labels: string, value: number | undefined][];

/**
 * The state in the Prometheus text format, version 0.0.4. Every figure is read from memory.
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
    ...sshAgentSamples(status.ssh_agent),
    ...volumeSamples(status.docker),
  ];
  return `${lines.join("\n")}\n`;
}

/** Empty while the SSH agent is off. */
function sshAgentSamples(agent: AgentStatus["ssh_agent"]): string[] {
  if (agent === undefined) return [];
  const { signed, refused } = agent.signatures;
  return [
    ...counter("agent_ssh_agent_signatures_total", "Signatures of the SSH agent by outcome.", [
      [`{outcome="signed"}`, signed],
      [`{outcome="refused"}`, refused],
    ]),
    ...gauge(
      "agent_ssh_agent_identities",
      "Keys that the SSH agent lists, by source.",
      agent.sources.map(({ name, identities }) => [`{source="${escapeLabel(name)}"}`, identities.length]),
    ),
    ...gauge("agent_ssh_agent_questions", "Questions of the SSH agent that wait for the user.", [
      ["", agent.questions.length],
    ]),
  ];
}

/** Empty while container volumes are off. */
function volumeSamples(docker: AgentStatus["docker"]): string[] {
  if (docker?.enabled !== true) return [];
  const labelled = docker.volumes.map((volume) => ({
    label: `{volume="${escapeLabel(volume.name)}"}`,
    ...volume,
  }));
  return [
    ...gauge(
      "agent_volume_mounts",
      "Containers that have the volume mounted.",
      labelled.map(({ label, mounts }) => [label, mounts]),
    ),
    ...gauge(
      "agent_volume_secrets",
      "Secrets in the files of the volume.",
      labelled.map(({ label, secrets }) => [label, secrets]),
    ),
    ...gauge(
      "agent_volume_failed",
      "1 if the files of the volume are not those of the store.",
      labelled.map(({ label, error }) => [label, error === null ? 0 : 1]),
    ),
  ];
}

/** Samples without a value (never synced) are left out. */
function gauge(name: string, help: string, samples: Samples): string[] {
  return metric("gauge", name, help, samples);
}

function counter(name: string, help: string, samples: Samples): string[] {
  return metric("counter", name, help, samples);
}

function metric(type: "gauge" | "counter", name: string, help: string, samples: Samples): string[] {
  const present = samples.filter(([, value]) => value !== undefined);
  if (present.length === 0) return [];
  const head = [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
  return [...head, ...present.map(([labels, value]) => `${name}${labels} ${value}`)];
}

function epochSeconds(time: string | null): number | undefined {
  return time === null ? undefined : Date.parse(time) / 1000;
}

function escapeLabel(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
