import type { AgentStatus } from "../../../status.ts";

/**
 * - `ready`: signed in, the first cycle is done, and the store answers.
 * - `starting`: the first cycle has not ended yet.
 * - `waiting`: there is no token; a user has to sign in.
 * - `stale`: files stay as they are because the store does not answer, or no cycle can be completed; also while one is
 *   tried.
 */
export type Readiness = "ready" | "starting" | "waiting" | "stale";

/** Every user of the host may ask this, so it says nothing else. */
export function readiness(status: AgentStatus): Readiness {
  const { authenticated, store, sync } = status;
  if (!store.reachable) return "stale";
  if (!authenticated || sync.state === "waiting") return "waiting";
  if (sync.stale_since !== null) return "stale";
  return sync.last_cycle_at === null ? "starting" : "ready";
}
