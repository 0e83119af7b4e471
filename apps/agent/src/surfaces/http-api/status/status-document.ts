import type { AgentStatus, PublicStatus } from "../../../status.ts";

/** Streams of the API get the status as JSON, on this channel. */
export const API_CHANNEL = "api";

/** The state as the caller may see it: all of it when the daemon is signed in. */
export function statusDocument(status: AgentStatus): AgentStatus | PublicStatus {
  if (status.authenticated) return status;
  const { version, time, auth, bootstrap } = status;
  return { version, time, authenticated: false, auth: { method: auth.method }, bootstrap };
}

/** The payload of the live "Updated" time: the end of the last completed cycle (ISO 8601), and whether the store answers. */
export interface LiveStatus {
  readonly updated_at: string | null;
  readonly connected: boolean;
}

export function liveStatus(status: AgentStatus): LiveStatus {
  return { updated_at: status.sync.last_cycle_at, connected: status.authenticated && status.store.reachable };
}
