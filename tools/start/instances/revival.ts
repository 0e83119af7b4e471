import { setInterval as every } from "node:timers/promises";
import { isProcess } from "@devplat/base/process-signal";

/** Seconds that a shared server stays away after its end, so that its outage can be observed. */
export const REVIVAL_SECONDS = 30;
const POLL_MS = 500;

/** A server that the instances share. */
export interface SharedServer {
  readonly name: string;
  /** Id of the process that runs now. */
  readonly pid: number;
  restart(): Promise<void>;
}

/**
 * Starts shared servers again {@link REVIVAL_SECONDS} after they have ended.
 *
 * @param changed called after each new start
 */
export async function reviveServers(
  servers: readonly SharedServer[],
  changed: () => Promise<void>,
  signal: AbortSignal,
  awaySeconds = REVIVAL_SECONDS,
): Promise<void> {
  const ended = new Map<SharedServer, number>();
  try {
    for await (const _ of every(POLL_MS, undefined, { signal, ref: false })) {
      for (const server of servers) {
        if (isProcess(server.pid)) continue;
        const since = ended.get(server) ?? performance.now();
        if (!ended.has(server)) {
          ended.set(server, since);
          say(server, `has ended; it starts again in ${awaySeconds} s`);
        }
        if (performance.now() - since < awaySeconds * 1000) continue;
        await server.restart();
        ended.delete(server);
        await changed();
        say(server, `runs again as process ${server.pid}`);
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

function say({ name }: SharedServer, text: string): void {
  process.stderr.write(`${name} | ${text}\n`);
}
