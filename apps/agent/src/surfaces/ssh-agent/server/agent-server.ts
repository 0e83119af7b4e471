import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import type { Logger } from "@devplat/base";
import { ListeningPlace } from "../../listening/listening-place.ts";
import { findPeer, type PeerProcess } from "../peer-process/peer-process.ts";
import { OpenConnections } from "./open-connections.ts";
import { serveConnection, type MessageHandler } from "./serve-connection.ts";

/** Concurrent connections of one socket. Forwarded agents keep theirs as long as a program on the other host uses it. */
const MAX_CONNECTIONS = 64;

export interface AgentServerOptions {
  /** Absolute path of the socket. */
  readonly path: string;
  /** A listening socket that a supervisor has opened; then the path is the supervisor's. */
  readonly descriptor: number | undefined;
  /** Makes the handler of a connection. @param caller undefined where the process cannot be found */
  readonly handlerFor: (caller: PeerProcess | undefined) => MessageHandler;
  readonly logger: Logger;
}

/** Serves the SSH agent's protocol on one Unix socket, to programs of this user only. */
export class SshAgentServer {
  readonly #options: AgentServerOptions;
  readonly #server: Server;
  readonly #connections = new OpenConnections(MAX_CONNECTIONS);
  readonly #place: ListeningPlace;

  constructor(options: AgentServerOptions) {
    this.#options = options;
    this.#place = new ListeningPlace(options);
    // Nothing is read before the other process is known.
    this.#server = createServer({ pauseOnConnect: true }, (socket) => void this.#accept(socket));
  }

  get path(): string {
    return this.#place.path;
  }

  /** @throws AgentError `socket_in_use` | `socket_refused` */
  async start(): Promise<void> {
    const { logger } = this.#options;
    await this.#place.listen(this.#server);
    logger.info({ socket: this.#place.path, activated: this.#place.isActivated }, "SSH agent listens");
  }

  async stop(): Promise<void> {
    // The file first, so that no new client connects.
    await this.#place.remove();
    for (const socket of this.#connections.sockets) socket.destroy();
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    await closed;
  }

  async #accept(socket: Socket): Promise<void> {
    // Until it is served: a client may leave at any time.
    socket.on("error", () => undefined);
    const { logger, handlerFor } = this.#options;
    if (this.#connections.add(socket) !== undefined) {
      logger.warn({ socket: this.#place.path }, "SSH agent has too many connections: one is closed");
    }
    if (socket.destroyed) return;
    try {
      const peer = await findPeer(socket);
      if (peer.owner === "other") {
        logger.warn(
          { socket: this.#place.path, uid: peer.uid },
          "SSH agent refused a program of another user",
        );
        socket.destroy();
      } else if (!socket.destroyed) {
        const onMessage = (): void => this.#connections.touch(socket);
        this.#connections.serve(socket, serveConnection(socket, handlerFor(peer.process), logger, onMessage));
      }
    } catch (error) {
      if (socket.destroyed) return;
      logger.error({ err: error }, "connection to the SSH agent failed");
      socket.destroy();
    }
  }
}
