import { once } from "node:events";
import type { IncomingMessage, Server } from "node:http";
import type { Logger } from "@devplat/base";
import type { Hono } from "hono";
import { closeServer, createBoundedServer } from "../http-api/bounded-server.ts";
import type { Environment } from "../http-api/environment.ts";
import { guardedListener } from "../http-api/guarded-listener.ts";
import type { Problem } from "../http-api/problem.ts";
import { requestFault } from "../http-api/request-checks.ts";
import { checkActivated, listenOnPath, type PlacedSocket } from "./socket-place.ts";
import { descriptorPath } from "./activation.ts";

export interface SocketServerOptions {
  /** Where it lies; absolute. */
  readonly path: string;
  /** A listening socket that a supervisor has opened; then the path is the supervisor's. */
  readonly descriptor?: number | undefined;
  readonly app: Hono<Environment>;
  /** Ends answers that never end by themselves. Default: there are none. */
  readonly closeStreams?: () => void;
  readonly logger: Logger;
}

/** Serves an app on a Unix socket. Its file mode says who may come in, so there is no other lock. */
export class SocketServer {
  readonly #options: SocketServerOptions;
  readonly #server: Server = createBoundedServer();
  #path: string;
  #placed: PlacedSocket | undefined;

  constructor(options: SocketServerOptions) {
    this.#options = options;
    this.#path = options.path;
    const refusalOf = async (request: IncomingMessage): Promise<Problem | undefined> => requestFault(request);
    this.#server.on("request", guardedListener(options.app, refusalOf, options.logger));
  }

  /** Where it really lies, once {@link SocketServer.listen} has resolved. */
  get path(): string {
    return this.#path;
  }

  /** @throws AgentError `socket_in_use` | `socket_refused` */
  async listen(): Promise<void> {
    const { path, descriptor, logger } = this.#options;
    if (descriptor === undefined) {
      this.#placed = await listenOnPath(this.#server, path);
    } else {
      this.#path = await checkActivated(await descriptorPath(descriptor));
      this.#server.listen({ fd: descriptor });
      await once(this.#server, "listening");
    }
    logger.info({ socket: this.#path, activated: descriptor !== undefined }, "socket listens");
  }

  /** Serves until the signal fires; then the file goes first, so that nobody new comes. */
  async run(signal: AbortSignal): Promise<void> {
    if (!signal.aborted) await once(signal, "abort");
    await this.#placed?.remove();
    await closeServer(this.#server, this.#options.closeStreams ?? (() => undefined));
  }
}
