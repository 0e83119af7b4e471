import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { z } from "zod";
import { AgentError } from "../errors.ts";
import { readWebAccess } from "./web-key.ts";

/** The daemon answers from memory; longer than this, in milliseconds, it hangs. */
const TIMEOUT_MS = 5000;

const csrfSchema = z.object({ token: z.string() });
const linkSchema = z.object({ url: z.string() });

/**
 * Asks the running daemon for a link that lets the user's browser in, for `agent open`: single use, 30 seconds.
 *
 * @param runtimeFolder the daemon's runtime folder
 * @throws AgentError `daemon_unreachable`
 */
export async function requestOpenLink(runtimeFolder: string): Promise<string> {
  try {
    const { url, key } = await readWebAccess(runtimeFolder);
    const headers = { Authorization: `Bearer ${key.reveal()}` };
    const { token } = csrfSchema.parse(await call("GET", `${url}/api/v1/csrf`, headers));
    const answer = await call("POST", `${url}/api/v1/unlock`, { ...headers, "X-CSRF-Token": token });
    return linkSchema.parse(answer).url;
  } catch (error) {
    throw new AgentError("daemon_unreachable", "Cannot get a link from the daemon: it does not answer", {
      hint: "Start it with 'agent run', with web.enabled: true.",
      cause: error,
    });
  }
}

/** One call with node:http, because loading a fetch costs the command line more than everything else it does. */
async function call(method: string, url: string, headers: Record<string, string>): Promise<unknown> {
  const outgoing = request(url, { method, headers, timeout: TIMEOUT_MS });
  outgoing.on("timeout", () => outgoing.destroy(new Error("no answer in time")));
  outgoing.end();
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  const body = await text(incoming);
  if ((incoming.statusCode ?? 500) >= 300) throw new Error(`status ${incoming.statusCode}`);
  return JSON.parse(body) as unknown;
}
