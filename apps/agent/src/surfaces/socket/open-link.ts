import { z } from "zod";
import { AgentError } from "../../errors.ts";
import { DaemonClient } from "./daemon-client.ts";

const linkSchema = z.object({ url: z.string() });

/**
 * Asks the running daemon for a link that lets the user's browser in, for `agent open`: single use, 30 seconds.
 *
 * @param runtimeFolder the daemon's runtime folder
 * @param socketPath its API socket; without one, or without a response on it, the web port is used
 * @throws AgentError `daemon_unreachable` | `daemon_refused` when the daemon has no web UI
 */
export async function requestOpenLink(runtimeFolder: string, socketPath?: string): Promise<string> {
  const response = await new DaemonClient(runtimeFolder, socketPath).change("/api/v1/unlock");
  const link = linkSchema.safeParse(response?.body);
  if (response?.status === 201 && link.success) return link.data.url;
  const start = "Start it with 'agent run', with web.enabled: true.";
  if (response?.status === 404) {
    throw new AgentError("daemon_refused", "The running daemon has no web UI", { hint: start });
  }
  throw new AgentError("daemon_unreachable", "Cannot get a link from the daemon: it does not answer", {
    hint: start,
  });
}
