import { basename, resolve } from "node:path";
import { BRAND } from "../../brand.ts";
import type { Config } from "../../config/schema.ts";
import { expandHome } from "../../config/sections/rule.ts";
import { AgentError } from "../../errors.ts";
import type { Host } from "../../host.ts";
import { sshAgentSocketPath } from "../../surfaces/socket/places.ts";

/** Name of the main socket. */
const MAIN = "main";

/** A socket of the SSH agent. */
export interface AgentSocket {
  /** `main`, or the name of the file without `.sock`. A name that is not unique is the path instead. */
  readonly name: string;
  readonly path: string;
}

/**
 * The sockets of the SSH agent, the main one first.
 * @throws AgentError `not_configured` while the SSH agent is off
 */
export function agentSockets(
  { places }: Pick<Host, "places">,
  { agent }: Pick<Config, "agent">,
): readonly [AgentSocket, ...AgentSocket[]] {
  if (!agent.enabled) {
    throw new AgentError("not_configured", "The SSH agent is off: agent.enabled is false", {
      hint: `Set agent.enabled: true in the configuration, then run '${BRAND.command} reload'.`,
    });
  }
  const paths = agent.sockets.map(({ path }) => expandHome(path, places.home));
  const names = [MAIN, ...paths.map(fileName)];
  const others = paths.map((path): AgentSocket => {
    const name = fileName(path);
    const isUnique = names.filter((each) => each === name).length === 1;
    return { name: isUnique ? name : path, path };
  });
  return [{ name: MAIN, path: sshAgentSocketPath(places, agent) }, ...others];
}

/**
 * Path of a socket of the SSH agent.
 * @param wanted name or path of the socket; undefined: the main one
 * @throws AgentError `not_configured` while the SSH agent is off, or if it has no such socket
 */
export function agentSocket(
  host: Pick<Host, "places">,
  config: Pick<Config, "agent">,
  wanted?: string,
): string {
  const sockets = agentSockets(host, config);
  if (wanted === undefined) return sockets[0].path;
  const path = resolve(expandHome(wanted, host.places.home));
  const found = sockets.find((each) => each.name === wanted) ?? sockets.find((each) => each.path === path);
  if (found !== undefined) return found.path;
  throw new AgentError("not_configured", `The SSH agent has no socket '${wanted}'`, {
    hint: `Choose one of: ${sockets.map(({ name }) => name).join(", ")}. The list agent.sockets of the configuration adds more.`,
  });
}

function fileName(path: string): string {
  return basename(path, ".sock");
}
