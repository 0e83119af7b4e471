import type { IncomingMessage, Server } from "node:http";
import type { Logger } from "@devplat/base";
import type { Hono } from "hono";
import { closeServer, createBoundedServer } from "../listening/bounded-server.ts";
import type { Environment } from "../http-api/environment.ts";
import { guardedListener } from "../http-api/guarded-listener.ts";
import type { Surface, SurfaceStatus } from "../surface.ts";
import type { Problem } from "../http-api/problems/problem.ts";
import { requestFault } from "../http-api/request-checks.ts";
import { ListeningPlace } from "../listening/listening-place.ts";

export interface SocketServerOptions {
  /** Absolute path of the socket. */
  readonly path: string;
  /** A listening socket that a supervisor has opened; then the path is the supervisor's. */
  readonly descriptor: number | undefined;
  readonly app: Hono<Environment>;
  /** Event streams of the app, which follow the daemon and never end by themselves; undefined where it has none. */
  readonly streams: { follow(signal: AbortSignal): void; closeAll(): void } | undefined;
  /** The part of the status for this socket. @param path where it is */
  readonly statusAt: (path: string) => SurfaceStatus;
  readonly logger: Logger;
}

/** Serves an app on a Unix socket. The mode of the socket decides who may connect, so there is no other check. */
export class SocketServer implements Surface {
  readonly #options: SocketServerOptions;
  readonly #server: Server = createBoundedServer();
  readonly #place: ListeningPlace;
  readonly #stopped = new AbortController();

  constructor(options: SocketServerOptions) {
    this.#options = options;
    this.#place = new ListeningPlace(options);
    const refusalOf = async (request: IncomingMessage): Promise<Problem | undefined> => requestFault(request);
    this.#server.on("request", guardedListener(options.app, refusalOf, options.logger));
  }

  /** @throws AgentError `socket_in_use` | `socket_refused` */
  async start(): Promise<void> {
    const { streams, logger } = this.#options;
    await this.#place.listen(this.#server);
    streams?.follow(this.#stopped.signal);
    logger.info({ socket: this.#place.path, activated: this.#place.isActivated }, "socket listens");
  }

  /** The api section applies after the next start. */
  async reconcile(): Promise<void> {}

  status(): SurfaceStatus {
    return this.#options.statusAt(this.#place.path);
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    // The file first, so that no new client connects.
    await this.#place.remove();
    await closeServer(this.#server, () => this.#options.streams?.closeAll());
  }
}
