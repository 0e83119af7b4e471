import { formatDuration } from "@devplat/base";
import { decodePublicKeyLine, fingerprint } from "@devplat/ssh-protocol";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Places } from "../../agent-files/places.ts";
import { PEER_OFFERS } from "../../config/sections/peer-offers.ts";
import type { RemoteView } from "../../remote-view.ts";
import { defaultRemoteSocket, type RemoteEntry } from "../../surfaces/forwards/file/remote-entry.ts";
import { loanSettings } from "../../surfaces/forwards/tokens/token-lender.ts";
import { RemotesFile } from "../../surfaces/forwards/file/remotes-file.ts";

/** A remote of ssh.yaml whose state nobody can tell. */
export type OfflineRemote = Omit<RemoteView, "state" | "since" | "reconnects" | "tokens"> & {
  readonly state: "unavailable";
  readonly since: null;
  readonly reconnects: null;
  readonly tokens: null;
};

/** The remotes of ssh.yaml. @throws RemotesFileError | AgentError */
export async function offlineRemotes({ configFolder }: Places): Promise<readonly OfflineRemote[]> {
  const path = join(configFolder, "ssh.yaml");
  const file = new RemotesFile({ path, defaultSocket: defaultRemoteSocket(hostname()) });
  return (await file.read()).map(offlineRemote);
}

function offlineRemote(entry: RemoteEntry): OfflineRemote {
  const { host_key: line } = entry;
  const settings = loanSettings(entry);
  return {
    host: entry.host,
    port: entry.port,
    remote_socket: entry.remote_socket,
    remote_socket_expanded: null,
    enabled: entry.enabled,
    user: entry.user ?? null,
    proxy_jump: entry.proxy_jump ?? null,
    offers: entry.offers ?? [...PEER_OFFERS],
    policies: entry.policies ?? null,
    policies_strict: settings.policiesStrict,
    token_ttl: formatDuration(settings.ttlMs),
    ask: settings.ask,
    lend: settings.lend,
    state: "unavailable",
    proven: false,
    error: null,
    since: null,
    next_attempt_at: null,
    reconnects: null,
    host_key: line === undefined ? null : keyOf(line),
    trust: line === undefined ? "none" : "pin",
    tokens: null,
  };
}

function keyOf(line: string): RemoteView["host_key"] {
  const { type, blob } = decodePublicKeyLine(line);
  return { type, fingerprint: fingerprint(blob), key: line };
}
