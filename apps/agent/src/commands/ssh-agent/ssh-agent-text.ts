import { tableLines, visible } from "@devplat/base/terminal";
import { BRAND } from "../../brand.ts";
import type { AgentStatus } from "../../status.ts";

type Status = NonNullable<AgentStatus["ssh_agent"]>;
type Identity = Status["sources"][number]["identities"][number];

export const LOCKED_LINE = "The SSH agent is locked; 'ssh-add -X' unlocks it.";
const HIDDEN_LINE = `'ssh-add -D' has hidden the daemon's keys; '${BRAND.command} keys show' shows them again.`;
/** Refusals that `agent status` shows. */
const SHOWN_REFUSALS = 3;

/** The block of `agent status`; empty while the SSH agent is off. */
export function sshAgentLines(status: Status | undefined): string[] {
  if (status === undefined) return [];
  const { sockets, socket_problems: problems, withheld, refusals, signatures } = status;
  return [
    "",
    "SSH Agent",
    ...sockets.map((socket) => `  Socket:     ${socket}`),
    ...problems.map(({ socket, reason }) => `  Not open:   ${socket}: ${visible(reason)}`),
    `  Signatures: ${signatures.signed} made, ${signatures.refused} refused`,
    ...(withheld === 0 ? [] : [`  Withheld:   ${withheld} times, because the client sent no session-bind`]),
    ...refusals
      .slice(0, SHOWN_REFUSALS)
      .map(({ at, fingerprint, reason }) => `  Refused:    ${at} ${fingerprint}: ${reason}`),
    ...keyLines(status),
  ];
}

/** A table of the keys, then what is wrong or waits for the user. */
export function keyLines({ sources, locked, questions }: Status): string[] {
  const rows = sources.flatMap(({ name, identities }) =>
    identities.map((identity) => [
      name,
      identity.comment,
      visible(identity.path ?? ""),
      identity.type,
      identity.fingerprint,
      stateText(identity),
      restrictionText(identity),
    ]),
  );
  const isHidden = sources.some(({ identities }) => identities.some(({ state }) => state === "hidden"));
  return [
    ...(rows.length === 0
      ? [noKeysLine(sources)]
      : tableLines(["SOURCE", "KEY", "PATH", "TYPE", "FINGERPRINT", "STATE", "ONLY FOR"], rows)),
    ...sources.flatMap(({ name, error }) => (error === null ? [] : [`Source ${name}: ${error}`])),
    ...(locked ? [LOCKED_LINE] : []),
    ...(isHidden ? [HIDDEN_LINE] : []),
    ...questions.map(({ kind, identity }) =>
      kind === "passphrase"
        ? `Waiting for the passphrase of ${identity}: '${BRAND.command} keys unlock' gives it.`
        : `Waiting for a confirmation to use ${identity}: answer it in the web UI.`,
    ),
  ];
}

/** Names the sources that were looked at. */
function noKeysLine(sources: Status["sources"]): string {
  if (sources.length === 0) return "No keys: agent.keys and agent.relay name no source.";
  return `No keys in ${sources.map(({ name, source }) => `${name} (${source})`).join(", ")}.`;
}

function stateText({ state, certificate_expires_at, unlocked_until }: Identity): string {
  // "hidden until" would be read as the end of the hiding.
  const until = state === "ready" || state === "unlocked" ? (certificate_expires_at ?? unlocked_until) : null;
  return until === null ? state : `${state} until ${until}`;
}

/** Where a key may be used; empty for everywhere. */
function restrictionText({ hosts, via, namespaces }: Identity): string {
  return [
    ...(hosts ?? []),
    ...(via ?? []).map((host) => `via ${host}`),
    ...(namespaces ?? []).map((namespace) => `namespace ${namespace}`),
  ].join(", ");
}
