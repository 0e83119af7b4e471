import { BRAND } from "../../brand.ts";
import type { Config } from "../../config/schema.ts";
import { AgentError } from "../../errors.ts";
import type { Host } from "../../host.ts";
import { sshAgentSocketPath } from "../../surfaces/socket/places.ts";

/** Path of the main socket of the SSH agent. @throws AgentError `not_configured` while the SSH agent is off */
export function agentSocket({ places }: Pick<Host, "places">, { agent }: Pick<Config, "agent">): string {
  if (agent.enabled) return sshAgentSocketPath(places, agent);
  throw new AgentError("not_configured", "The SSH agent is off: agent.enabled is false", {
    hint: `Set agent.enabled: true in the configuration, then run '${BRAND.command} reload'.`,
  });
}
