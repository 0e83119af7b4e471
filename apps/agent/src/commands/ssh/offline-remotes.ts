import { systemClock } from "@devplat/base";
import { hostname } from "node:os";
import type { Places } from "../../agent-files/places.ts";
import { remotesPath } from "../../assemble/forward-places.ts";
import type { RemoteView } from "../../remote-view.ts";
import { remoteDocument, StateTimes } from "../../surfaces/forwards/control/remote-document.ts";
import { defaultRemoteSocket } from "../../surfaces/forwards/file/remote-entry.ts";
import { RemotesFile } from "../../surfaces/forwards/file/remotes-file.ts";

/** A remote of ssh.yaml whose state nobody can tell. */
export type OfflineRemote = Omit<RemoteView, "state" | "since" | "reconnects" | "tokens"> & {
  readonly state: "unavailable";
  readonly since: null;
  readonly reconnects: null;
  readonly tokens: null;
};

const UNAVAILABLE = {
  state: "unavailable",
  error: null,
  since: null,
  reconnects: null,
  tokens: null,
} as const;
/** Facts that only the daemon has. */
const NO_FACTS = {
  forward: undefined,
  loan: { tokens: [], addedPolicies: [], problem: undefined, asking: false },
  trust: { authorities: [], ignoreHostKeys: false },
};

/** The remotes of ssh.yaml. @throws RemotesFileError | AgentError */
export async function offlineRemotes(places: Places): Promise<readonly OfflineRemote[]> {
  const file = new RemotesFile({ path: remotesPath(places), defaultSocket: defaultRemoteSocket(hostname()) });
  const times = new StateTimes(systemClock);
  const entries = await file.read();
  return entries.map((entry) => ({ ...remoteDocument({ entry, ...NO_FACTS }, times), ...UNAVAILABLE }));
}
