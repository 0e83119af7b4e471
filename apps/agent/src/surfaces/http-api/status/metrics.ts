import type { MetricFamily, MetricSample } from "@devplat/telemetry";
import type { AgentStatus, RuleStatus } from "../../../status.ts";
import { readiness } from "./health.ts";
import { liveStatus } from "./status-document.ts";

const STATES: readonly RuleStatus["state"][] = ["ok", "pending", "failed", "missing", "paused"];

/** Samples without a value (never synced) are left out. */
type Samples = readonly (readonly [labels: MetricSample["labels"], value: number | undefined])[];

/**
 * The metrics of the daemon, for Prometheus and for OpenTelemetry. Every figure is read from memory.
 *
 * @param openStreams live streams of pages and API
 */
export function metricFamilies(status: AgentStatus, openStreams: number): MetricFamily[] {
  const rules = Object.entries(status.rules);
  const enabled = status.remotes.filter((remote) => remote.enabled);
  const families = [
    gauge("agent_info", "Version of the daemon.", [[{ version: status.version }, 1]]),
    gauge("agent_uptime_seconds", "Seconds since the daemon started.", [[{}, status.uptime_seconds]]),
    gauge("agent_authenticated", "1 if the daemon holds a store token.", [
      [{}, Number(status.authenticated)],
    ]),
    gauge("agent_connected", "1 if the secrets store answers.", [[{}, Number(liveStatus(status).connected)]]),
    gauge("agent_stale", "1 if files are kept although the store does not answer.", [
      [{}, Number(readiness(status) === "stale")],
    ]),
    gauge("agent_last_cycle_timestamp_seconds", "End of the last completed sync cycle.", [
      [{}, epochSeconds(status.sync.last_cycle_at)],
    ]),
    gauge("agent_event_streams", "Open live streams.", [[{}, openStreams]]),
    gauge(
      "agent_rules",
      "Sync rules by state.",
      STATES.map((state) => [{ state }, rules.filter(([, rule]) => rule.state === state).length]),
    ),
    gauge(
      "agent_rule_last_synced_timestamp_seconds",
      "Last time that the rule's target was in step with the store.",
      rules.map(([rule, { last_synced }]) => [{ rule }, epochSeconds(last_synced)]),
    ),
    gauge(
      "agent_rule_consecutive_failures",
      "Failed tries of the rule since it last succeeded.",
      rules.map(([rule, { consecutive_failures }]) => [{ rule }, consecutive_failures]),
    ),
    gauge(
      "agent_ssh_forward_up",
      "1 if the managed SSH forward to the host is connected.",
      enabled.map(({ host, state }) => [{ host }, Number(state === "connected")]),
    ),
    gauge(
      "agent_ssh_forward_reconnects",
      "Times that the managed SSH forward came back since it was enabled.",
      enabled.map(({ host, reconnects }) => [{ host }, reconnects]),
    ),
    gauge(
      "agent_ssh_tokens_lent",
      "Store tokens that the remote host has now.",
      enabled.map(({ host, tokens }) => [{ host }, tokens.lent.length]),
    ),
    ...sshAgentFamilies(status.ssh_agent),
    ...volumeFamilies(status.docker),
  ];
  return families.filter(({ samples }) => samples.length > 0);
}

/** Empty while the SSH agent is off. */
function sshAgentFamilies(agent: AgentStatus["ssh_agent"]): MetricFamily[] {
  if (agent === undefined) return [];
  const { signed, refused } = agent.signatures;
  return [
    counter("agent_ssh_agent_signatures_total", "Signatures of the SSH agent by outcome.", [
      [{ outcome: "signed" }, signed],
      [{ outcome: "refused" }, refused],
    ]),
    gauge(
      "agent_ssh_agent_identities",
      "Keys that the SSH agent lists, by source.",
      agent.sources.map(({ name, identities }) => [{ source: name }, identities.length]),
    ),
    gauge("agent_ssh_agent_questions", "Questions of the SSH agent that wait for the user.", [
      [{}, agent.questions.length],
    ]),
  ];
}

/** Empty while container volumes are off. */
function volumeFamilies(docker: AgentStatus["docker"]): MetricFamily[] {
  if (docker?.enabled !== true) return [];
  const { volumes } = docker;
  return [
    gauge(
      "agent_volume_mounts",
      "Containers that have the volume mounted.",
      volumes.map(({ name, mounts }) => [{ volume: name }, mounts]),
    ),
    gauge(
      "agent_volume_secrets",
      "Secrets in the files of the volume.",
      volumes.map(({ name, secrets }) => [{ volume: name }, secrets]),
    ),
    gauge(
      "agent_volume_failed",
      "1 if the files of the volume are not those of the store.",
      volumes.map(({ name, error }) => [{ volume: name }, error === null ? 0 : 1]),
    ),
  ];
}

function gauge(name: string, help: string, samples: Samples): MetricFamily {
  return { name, help, type: "gauge", samples: present(samples) };
}

function counter(name: string, help: string, samples: Samples): MetricFamily {
  return { name, help, type: "counter", samples: present(samples) };
}

function present(samples: Samples): MetricSample[] {
  return samples.flatMap(([labels, value]) => (value === undefined ? [] : [{ labels, value }]));
}

function epochSeconds(time: string | null): number | undefined {
  return time === null ? undefined : Date.parse(time) / 1000;
}
