import { lstat } from "node:fs/promises";
import type { z } from "zod";
import type { Places } from "../../agent-files/places.ts";
import type { Config } from "../../config/schema.ts";
import { agentStatusSchema, type AgentStatus, type CommandStatus } from "../../status.ts";
import { DaemonClient } from "./daemon-client.ts";
import { isPipeName } from "../listening/pipe-name.ts";
import { isAnswering } from "../listening/socket-place.ts";
import { apiSocketPath } from "./places.ts";

/** Before a login the status has only the time. */
const statusSchema = agentStatusSchema
  .pick({
    authenticated: true,
    uptime_seconds: true,
    sync: true,
    rules: true,
    peers: true,
    remotes: true,
    ssh_agent: true,
    docker: true,
    fuse: true,
  })
  .extend({
    store: agentStatusSchema.shape.store.pick({ reachable: true, last_error: true }),
    config: agentStatusSchema.shape.config.pick({ problems: true, reload_needed: true }),
  })
  .partial();

/** Status of the running daemon. */
export type ReportedStatus = z.infer<typeof statusSchema>;

/** Facts that only the running daemon knows, and the sockets that can be seen without it. */
export type DaemonStatus = Pick<CommandStatus, "daemon" | "api" | "peers" | "ssh_agent" | "docker" | "fuse"> &
  Partial<Pick<AgentStatus, "uptime_seconds" | "sync" | "rules" | "remotes">> & {
    /** Why it cannot use the store, or why its files are stale. */
    readonly storeFault?: { readonly reachable: boolean; readonly last_error: string | null };
    readonly config?: Pick<AgentStatus["config"], "problems" | "reload_needed">;
  };

/** Asks the running daemon, where the configuration has a place to ask it. Never throws. */
export async function readDaemonStatus(places: Places, { api, web }: Config): Promise<DaemonStatus> {
  if (!api.enabled && !web.enabled) return {};
  const socket = api.enabled ? apiSocketPath(places, api) : undefined;
  const seen = await askDaemon(places, socket);
  const {
    uptime_seconds: uptime,
    sync,
    rules,
    store,
    config,
    peers,
    remotes,
    ssh_agent,
    docker,
    fuse,
  } = seen ?? {};
  const hasFault = store !== undefined && (!store.reachable || sync?.state === "stale");
  return {
    daemon: { running: seen !== undefined },
    ...(uptime !== undefined && { uptime_seconds: uptime }),
    ...(sync !== undefined && { sync }),
    ...(rules !== undefined && { rules }),
    ...(hasFault && { storeFault: store }),
    ...(config !== undefined && { config }),
    ...(socket !== undefined && { api: { socket, present: await isSocket(socket) } }),
    ...(peers !== undefined && { peers }),
    ...(remotes !== undefined && { remotes }),
    ...(ssh_agent !== undefined && { ssh_agent }),
    ...(docker !== undefined && { docker }),
    ...(fuse !== undefined && { fuse }),
  };
}

/**
 * Asks the running daemon over its API socket or its web port; undefined if neither answers.
 * @param socket undefined where it has none
 */
export async function askDaemon(
  places: Places,
  socket: string | undefined,
): Promise<ReportedStatus | undefined> {
  const response = await new DaemonClient(places.runtime, socket).get("/api/v1/status");
  return statusSchema.safeParse(response?.body).data;
}

async function isSocket(path: string): Promise<boolean> {
  if (isPipeName(path)) return await isAnswering(path);
  return (await lstat(path).catch(() => undefined))?.isSocket() === true;
}
