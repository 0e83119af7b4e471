import { AgentError } from "../../errors.ts";
import type { SshAgentStatus } from "../../ssh-agent-view.ts";
import { LOCKED_LINE } from "./ssh-agent-text.ts";
import { lastErrorLine, runTool } from "../../platform/run-tool.ts";

/** Exit code of ssh-add if the agent has no keys. */
const NO_KEYS = 1;
/** The namespace of git's signatures. */
const GIT_NAMESPACE = "git";

/** A key that the SSH agent offers. */
export interface OfferedKey {
  /** Type and base64, as in a line of authorized_keys. */
  readonly line: string;
  readonly comment: string;
  readonly fingerprint: string;
}

/**
 * The plain keys that an SSH agent offers. Certificates are left out: their end would end the signatures.
 * @throws AgentError `daemon_unreachable` if the agent does not answer
 */
export async function offeredKeys(socket: string, environment: NodeJS.ProcessEnv): Promise<OfferedKey[]> {
  const result = await runTool("ssh-add", ["-L"], { environment: { ...environment, SSH_AUTH_SOCK: socket } });
  if (result.code === NO_KEYS) return [];
  if (result.code !== 0) {
    throw new AgentError("daemon_unreachable", `Cannot list the keys of ${socket}: ${lastErrorLine(result)}`);
  }
  const { decodePublicKeyLine, encodePublicKeyLine, fingerprint, isCertificateType } =
    await import("@devplat/ssh-protocol");
  return result.stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => decodePublicKeyLine(line))
    .filter(({ type }) => !isCertificateType(type))
    .map(({ blob, comment }) => ({
      line: encodePublicKeyLine(blob, "").trim(),
      comment,
      fingerprint: fingerprint(blob),
    }));
}

/**
 * The key for git's signatures.
 * @param name comment, path or fingerprint; undefined: the only one
 * @param status tells which keys are the daemon's own, and what they may sign; undefined if the daemon was not reached
 * @throws AgentError `usage` without exactly one
 */
export function chooseKey(
  keys: readonly OfferedKey[],
  name: string | undefined,
  status: SshAgentStatus | undefined,
): OfferedKey {
  const known = new Map(
    (status?.sources ?? []).flatMap(({ source, identities }) =>
      identities.map(
        (identity) => [identity.fingerprint, { ...identity, isOwn: source !== "relay" }] as const,
      ),
    ),
  );
  const signing = keys
    .map((key) => ({ ...key, comment: known.get(key.fingerprint)?.comment ?? key.comment }))
    .filter(({ fingerprint }) => known.get(fingerprint)?.namespaces?.includes(GIT_NAMESPACE) ?? true);
  const own = signing.filter(({ fingerprint }) => known.get(fingerprint)?.isOwn === true);
  const found =
    name === undefined
      ? own.length > 0
        ? own
        : signing
      : signing.filter(({ comment, fingerprint }) =>
          [comment, fingerprint, known.get(fingerprint)?.path].includes(name),
        );
  const [key] = found;
  if (key !== undefined && found.length === 1) return key;
  const choice = signing.map(({ comment, fingerprint }) => `${comment} (${fingerprint})`).join(", ");
  if (signing.length === 0 && status?.locked === true) throw new AgentError("usage", LOCKED_LINE);
  if (signing.length === 0) {
    throw new AgentError("usage", "The SSH agent offers no key that may sign for git", {
      hint: "'agent keys' lists its keys.",
    });
  }
  throw new AgentError(
    "usage",
    name === undefined
      ? "The SSH agent offers several keys"
      : `The SSH agent offers ${found.length} keys named ${name}`,
    { hint: `Choose one with --key and its fingerprint: ${choice}` },
  );
}
