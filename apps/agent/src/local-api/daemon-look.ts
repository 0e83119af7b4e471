import { lstat } from "node:fs/promises";
import { z } from "zod";
import type { Places } from "../config/places.ts";
import type { Config } from "../config/schema.ts";
import type { AgentStatus } from "../status.ts";
import { DaemonClient } from "./daemon-client.ts";
import { apiSocketPath } from "./places.ts";

const texts = z.array(z.string());
const time = z.string().nullable();
const ruleSchema = z.object({
  state: z.enum(["ok", "pending", "failed", "missing", "paused"]),
  error: z.string().nullable(),
  last_attempt: time,
  last_synced: time,
  next_attempt: time,
  consecutive_failures: z.number(),
  version: z.number().nullable(),
  run: z
    .object({
      at: z.string(),
      exit_code: z.number().nullable(),
      timed_out: z.boolean(),
      duration_ms: z.number(),
      stdout_bytes: z.number(),
      stderr_bytes: z.number(),
    })
    .exactOptional(),
});
/** Whoever is not signed in is told of the time alone. */
const statusSchema = z.object({
  authenticated: z.boolean().optional(),
  uptime_seconds: z.number().optional(),
  sync: z
    .object({
      state: z.enum(["idle", "running", "waiting", "stale"]),
      stale_since: time,
      last_cycle_at: time,
      next_cycle_at: time,
      events: z.enum(["connected", "polling", "unsupported"]),
    })
    .optional(),
  store: z.object({ reachable: z.boolean(), last_error: z.string().nullable() }).optional(),
  rules: z.record(z.string(), ruleSchema).optional(),
  config: z.object({ problems: texts, reload_needed: texts }).optional(),
  peers: z
    .object({
      socket: z.string(),
      offers: texts,
      token_handouts: z.number(),
      last_token_handout_at: z.string().nullable(),
    })
    .optional(),
});

/** What the running daemon says of itself. */
export type DaemonWord = z.infer<typeof statusSchema>;

/** What only the running daemon knows, and what of it shows from outside. */
export type DaemonLook = Pick<AgentStatus, "daemon" | "api" | "peers"> &
  Partial<Pick<AgentStatus, "uptime_seconds" | "sync" | "rules">> & {
    /** Why it cannot use the store, or why its files are stale. */
    readonly storeFault?: { readonly reachable: boolean; readonly last_error: string | null };
    readonly config?: Pick<AgentStatus["config"], "problems" | "reload_needed">;
  };

/** Asks the running daemon, where the configuration has a place to ask it. Never throws. */
export async function lookAtDaemon(places: Places, { api, web }: Config): Promise<DaemonLook> {
  if (!api.enabled && !web.enabled) return {};
  const socket = api.enabled ? apiSocketPath(places, api) : undefined;
  const seen = await askDaemon(places, socket);
  const { uptime_seconds: uptime, sync, rules, store, config, peers } = seen ?? {};
  const inTrouble = store !== undefined && (!store.reachable || sync?.state === "stale");
  return {
    daemon: { running: seen !== undefined },
    ...(uptime !== undefined && { uptime_seconds: uptime }),
    ...(sync !== undefined && { sync }),
    ...(rules !== undefined && { rules }),
    ...(inTrouble && { storeFault: store }),
    ...(config !== undefined && { config }),
    ...(socket !== undefined && { api: { socket, present: await isSocket(socket) } }),
    ...(peers !== undefined && { peers }),
  };
}

/**
 * Asks the running daemon over its API socket or its web port; undefined if neither answers.
 * @param socket undefined where it has none
 */
export async function askDaemon(places: Places, socket: string | undefined): Promise<DaemonWord | undefined> {
  const answer = await new DaemonClient(places.runtime, socket).get("/api/v1/status");
  return statusSchema.safeParse(answer?.body).data;
}

async function isSocket(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined))?.isSocket() === true;
}
