import { visible } from "@devplat/base/terminal";
import type { SshAgentIdentityView, SshAgentStatus } from "../../../ssh-agent-view.ts";
import { SshProtocolError, keyTypeOf } from "@devplat/ssh-protocol";
import type { IdentitySource } from "../identity.ts";
import type { RelayedAgent } from "../relay/relayed-agent.ts";
import { keyFingerprint } from "./key-fingerprint.ts";
import type { OwnKey } from "./own-keys.ts";

type SourceView = SshAgentStatus["sources"][number];
type UseOf = (fingerprint: string) => Pick<SshAgentIdentityView, "last_use" | "signatures">;

/** An own source, as the status shows it. @param state of all keys while the agent is locked or they are hidden */
export function ownSourceView(
  source: IdentitySource,
  { keys, state, useOf }: { keys: readonly OwnKey[]; state: "locked" | "hidden" | undefined; useOf: UseOf },
): SourceView {
  return {
    name: source.name,
    source: source.kind,
    error: source.problem() ?? null,
    identities: keys
      .filter((key) => key.source === source.name)
      .map(({ identity }) => ({
        ...keyView(identity.blob, identity.comment, useOf),
        path: identity.path ?? null,
        state: state ?? identity.state,
        certificate_expires_at: timeText(identity.certificateExpiresAt),
        unlocked_until: timeText(identity.unlockedUntil),
        hosts: listText(identity.restrictions.hosts),
        via: listText(identity.restrictions.via),
        namespaces: listText(identity.restrictions.namespaces),
      })),
  };
}

/** Another agent, as the status shows it: with the keys that it has listed last. */
export function relayView(
  relay: RelayedAgent,
  { isLocked, useOf }: { isLocked: boolean; useOf: UseOf },
): SourceView {
  return {
    name: relay.path,
    source: "relay",
    error: relay.problem ?? null,
    identities: relay.known.map(({ blob, comment }) => ({
      ...keyView(blob, comment, useOf),
      path: null,
      state: isLocked ? "locked" : "ready",
      certificate_expires_at: null,
      unlocked_until: null,
      hosts: null,
      via: null,
      namespaces: null,
    })),
  };
}

function keyView(
  blob: Buffer,
  comment: string,
  useOf: UseOf,
): Pick<SshAgentIdentityView, "comment" | "type" | "fingerprint" | "last_use" | "signatures"> {
  const fingerprint = keyFingerprint(blob);
  return { comment: visible(comment), type: typeOf(blob), fingerprint, ...useOf(fingerprint) };
}

function typeOf(blob: Buffer): string {
  try {
    return keyTypeOf(blob);
  } catch (error) {
    if (error instanceof SshProtocolError) return "unknown";
    throw error;
  }
}

function timeText(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}

function listText(list: readonly string[] | undefined): string[] | null {
  return list === undefined ? null : [...list];
}
