import type { LiveUpdates } from "../web/routes/live-updates.ts";
import type { SocketServer } from "./socket-server.ts";

export interface LocalApiParts {
  readonly api: SocketServer | undefined;
  readonly peer: SocketServer | undefined;
  /** Of the API socket's streams. */
  readonly live: Pick<LiveUpdates, "follow">;
}

/** The daemon's Unix sockets. */
export class LocalApi {
  readonly #parts: LocalApiParts;
  readonly #servers: readonly SocketServer[];

  constructor(parts: LocalApiParts) {
    this.#parts = parts;
    this.#servers = [parts.api, parts.peer].filter((server) => server !== undefined);
  }

  /** All sockets or none. @throws AgentError `socket_in_use` | `socket_refused` */
  async listen(): Promise<void> {
    const listening: SocketServer[] = [];
    try {
      for (const server of this.#servers) {
        await server.listen();
        listening.push(server);
      }
    } catch (error) {
      await Promise.all(listening.map((server) => server.run(AbortSignal.abort())));
      throw error;
    }
  }

  /** Serves until the signal fires. */
  async run(signal: AbortSignal): Promise<void> {
    this.#parts.live.follow(signal);
    await Promise.all(this.#servers.map((server) => server.run(signal)));
  }
}
