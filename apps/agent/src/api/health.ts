import type { AgentStatus } from "../status.ts";

/**
 * - `ready`: signed in, the first cycle is done, and the store answers.
 * - `starting`: the first cycle has not ended yet.
 * - `waiting`: there is no token; a user has to sign in.
 * - `stale`: files stay as they are because the store has not answered for too long.
 */
export type Readiness = "ready" | "starting" | "waiting" | "stale";

/** Every user of the host may ask this, so it says nothing else. */
export function readiness(status: AgentStatus): Readiness {
  if (!status.authenticated || status.sync.state === "waiting") return "waiting";
  if (status.sync.state === "stale") return "stale";
  return status.sync.last_cycle_at === null ? "starting" : "ready";
}
