import { z } from "zod";
import { BRAND } from "../../brand.ts";
import { AgentError } from "../../errors.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { Host } from "../../host.ts";
import { DaemonClient } from "../../surfaces/socket/daemon-client.ts";
import { apiSocketPath } from "../../surfaces/socket/places.ts";
import {
  agentStatusSchema,
  cycleResultSchema,
  ruleStatusSchema,
  type CycleResult,
  type RuleStatus,
} from "../../status.ts";

/** A whole cycle, with a slow store and the rules' commands, in milliseconds. */
const CYCLE_TIMEOUT_MS = 120_000;

/** The result of an older daemon has no list of missing secrets. */
const resultSchema = cycleResultSchema.extend({ missing: cycleResultSchema.shape.missing.default([]) });
/** Before a login the status has no rules and no store. */
const statusSchema = z.object({
  rules: z.record(z.string(), ruleStatusSchema.pick({ error: true })).optional(),
  store: agentStatusSchema.shape.store.pick({ last_error: true }).optional(),
});

/** Result of a cycle of the running daemon, and the reasons of failed rules. */
export interface DaemonCycle {
  readonly result: CycleResult;
  readonly errors: Readonly<Record<string, Pick<RuleStatus, "error">>>;
}

/**
 * Has the running daemon do a cycle, over its API socket or its web port.
 * @param socketPath its API socket; undefined where the configuration has none
 * @param timeoutMs for the cycle, in milliseconds
 * @param secret path of a secret that was just changed: the mount and the volumes look at it again
 * @returns undefined if no daemon can be reached this way
 * @throws AgentError `daemon_refused` if it could not do one
 */
export async function syncByDaemon(
  runtimeFolder: string,
  socketPath: string | undefined,
  timeoutMs: number = CYCLE_TIMEOUT_MS,
  secret?: string,
): Promise<DaemonCycle | undefined> {
  const daemon = new DaemonClient(runtimeFolder, socketPath);
  const query = new URLSearchParams({ wait: "true", ...(secret !== undefined && { secret }) });
  const response = await daemon.change(`/api/v1/sync?${query.toString()}`, { timeoutMs });
  const seen = response && statusSchema.safeParse((await daemon.get("/api/v1/status"))?.body);
  if (seen?.success !== true) return undefined;
  const { rules, store } = seen.data;
  if (response?.status === 200) {
    const result = resultSchema.safeParse(response.body);
    return result.success ? { result: result.data, errors: rules ?? {} } : undefined;
  }
  throw new AgentError(
    "daemon_refused",
    `the running daemon could not sync: ${store?.last_error ?? "not signed in"}`,
    store === undefined
      ? { hint: `Run '${BRAND.command} login'. '${BRAND.command} status' tells more.` }
      : {},
  );
}

/**
 * Has the running daemon do a cycle that begins after this call, so that it knows what was changed before.
 * @param timeoutMs for a cycle, in milliseconds
 * @param secret see {@link syncByDaemon}
 * @throws AgentError as {@link syncByDaemon}
 */
export async function freshCycle(
  { places }: Host,
  { config: { api } }: LoadedConfig,
  timeoutMs?: number,
  secret?: string,
): Promise<DaemonCycle | undefined> {
  const socketPath = api.enabled ? apiSocketPath(places, api) : undefined;
  const now = Date.now();
  const cycle = await syncByDaemon(places.runtime, socketPath, timeoutMs, secret);
  // A cycle that was running may have read the store before the change.
  const isOld = cycle !== undefined && Date.parse(cycle.result.started_at) < now;
  return isOld ? await syncByDaemon(places.runtime, socketPath, timeoutMs) : cycle;
}
