import { lstat } from "node:fs/promises";
import { z } from "zod";
import type { Places } from "../config/places.ts";
import type { ApiSection } from "../config/surface-sections.ts";
import { DaemonClient } from "./daemon-client.ts";
import { apiSocketPath } from "./places.ts";
import type { SocketStatus } from "./status-view.ts";

const statusSchema = z.object({
  peers: z
    .object({
      socket: z.string(),
      offers: z.array(z.string()),
      token_handouts: z.number(),
      last_token_handout_at: z.string().nullable(),
    })
    .optional(),
});

/** The sockets as a command sees them: whether the API socket is there, and what the daemon says of the peers'. */
export async function lookAtSockets(places: Places, api: ApiSection): Promise<SocketStatus> {
  if (!api.enabled) return {};
  const socket = apiSocketPath(places, api);
  const present = (await lstat(socket).catch(() => undefined))?.isSocket() === true;
  const answer = present ? await new DaemonClient(places.runtime, socket).get("/api/v1/status") : undefined;
  const peers = statusSchema.safeParse(answer?.body).data?.peers;
  return { api: { socket, present }, ...(peers !== undefined && { peers }) };
}
