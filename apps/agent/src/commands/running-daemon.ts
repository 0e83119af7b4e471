import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { z } from "zod";
import { AgentError } from "../errors.ts";
import type { CycleResult, RuleStatus } from "../status.ts";
import { readWebAccess } from "../web/web-key.ts";

/** Answers from memory come at once; longer than this, in milliseconds, the daemon hangs. */
const ANSWER_TIMEOUT_MS = 5000;
/** A whole cycle, with a slow store and the rules' commands, in milliseconds. */
const CYCLE_TIMEOUT_MS = 120_000;

const csrfSchema = z.object({ token: z.string() });
const resultSchema = z.object({
  started_at: z.string(),
  finished_at: z.string(),
  changed: z.array(z.string()),
  unchanged: z.array(z.string()),
  failed: z.array(z.string()),
});
/** Whoever is not signed in is not told of rules and store. */
const statusSchema = z.object({
  rules: z.record(z.string(), z.object({ error: z.string().nullable() })).optional(),
  store: z.object({ last_error: z.string().nullable() }).optional(),
});

/** What a cycle of the running daemon did, and why rules failed. */
export interface DaemonCycle {
  readonly result: CycleResult;
  readonly errors: Readonly<Record<string, Pick<RuleStatus, "error">>>;
}

/**
 * Has the running daemon do a cycle, over its web listener.
 * @returns undefined if there is no daemon to be reached this way
 * @throws AgentError `daemon_refused` if it could not do one
 */
export async function syncByDaemon(runtimeFolder: string): Promise<DaemonCycle | undefined> {
  const access = await readWebAccess(runtimeFolder).catch(() => undefined);
  if (access === undefined) return undefined;
  const { url, key } = access;
  const headers = { Authorization: `Bearer ${key.reveal()}` };
  const get = async (path: string): Promise<unknown> => {
    const { status, body } = await call("GET", url + path, headers, ANSWER_TIMEOUT_MS);
    if (status !== 200) throw new Error(`status ${status}`);
    return body;
  };
  try {
    const { token } = csrfSchema.parse(await get("/api/v1/csrf"));
    const mutation = { ...headers, "X-CSRF-Token": token };
    const answer = await call("POST", `${url}/api/v1/sync?wait=true`, mutation, CYCLE_TIMEOUT_MS);
    const { rules, store } = statusSchema.parse(await get("/api/v1/status"));
    if (answer.status === 200) return { result: resultSchema.parse(answer.body), errors: rules ?? {} };
    throw new AgentError(
      "daemon_refused",
      `the running daemon could not sync: ${store?.last_error ?? "not signed in"}`,
    );
  } catch (error) {
    if (error instanceof AgentError) throw error;
    return undefined;
  }
}

/** With node:http, because loading a fetch costs the command line more than everything else it does. */
async function call(
  method: string,
  url: string,
  headers: Record<string, string>,
  timeout: number,
): Promise<{ status: number; body: unknown }> {
  const outgoing = request(url, { method, headers, timeout });
  outgoing.on("timeout", () => outgoing.destroy(new Error("no answer in time")));
  outgoing.end();
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  return { status: incoming.statusCode ?? 500, body: JSON.parse(await text(incoming)) as unknown };
}
