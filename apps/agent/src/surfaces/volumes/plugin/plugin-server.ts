import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Logger } from "@devplat/base";
import { closeServer, createBoundedServer } from "../../listening/bounded-server.ts";
import { ListeningPlace } from "../../listening/listening-place.ts";
import { peerCredentials } from "../../listening/peer-credentials.ts";
import { PLUGIN_CONTENT_TYPE, failure, respondToCall, type VolumeDriver } from "./plugin-protocol.ts";

/** Maximum body of a request, in bytes. */
const MAX_BODY_BYTES = 1024 * 1024;
const ROOT = 0;

export interface PluginServerOptions {
  /** Absolute path of the socket. */
  readonly path: string;
  /** A listening socket that a supervisor has opened; then the path is the supervisor's. */
  readonly descriptor: number | undefined;
  readonly driver: VolumeDriver;
  readonly logger: Logger;
}

/** Serves the volume plugin protocol on a Unix socket, to root and to the daemon's own user. */
export class PluginServer {
  readonly #options: PluginServerOptions;
  readonly #server: Server = createBoundedServer();
  readonly #idle = new Set<() => void>();
  readonly #place: ListeningPlace;
  #running = 0;

  constructor(options: PluginServerOptions) {
    this.#options = options;
    this.#place = new ListeningPlace(options);
    this.#server.on("request", (request, response) => void this.#serve(request, response));
  }

  get path(): string {
    return this.#place.path;
  }

  /** @throws AgentError `socket_in_use` | `socket_refused` */
  async start(): Promise<void> {
    const { logger } = this.#options;
    await this.#place.listen(this.#server);
    logger.info({ socket: this.#place.path, activated: this.#place.isActivated }, "volume plugin listens");
  }

  async stop(): Promise<void> {
    // The file first, so that no new client connects.
    await this.#place.remove();
    if (this.#server.listening) await closeServer(this.#server, () => undefined);
  }

  /** Resolves when no call is served. An engine waits for the plugin, so it must not be asked during a call. */
  async idle(): Promise<void> {
    if (this.#running === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#idle.add(resolve);
    await promise;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#running++;
    try {
      const { status, document } = await this.#respond(request);
      // One request for each connection: a kept one could be closed while the engine sends the next request.
      response.writeHead(status, { "Content-Type": PLUGIN_CONTENT_TYPE, Connection: "close" });
      response.end(`${JSON.stringify(document)}\n`);
    } catch (error) {
      // The engine has gone away.
      this.#options.logger.debug({ err: error }, "call of the volume plugin was not answered");
      response.destroy();
    } finally {
      this.#running--;
      if (this.#running === 0) {
        for (const resolve of this.#idle) resolve();
        this.#idle.clear();
      }
    }
  }

  async #respond(request: IncomingMessage): ReturnType<typeof respondToCall> {
    const { driver, logger } = this.#options;
    const uid = peerCredentials(request.socket)?.uid;
    if (uid !== undefined && uid !== ROOT && uid !== process.geteuid?.()) {
      logger.warn({ socket: this.#place.path, uid }, "volume plugin refused a program of another user");
      return failure(403, "this volume plugin serves another user");
    }
    if (request.method !== "POST") return failure(405, "a volume plugin is called by POST");
    const text = await readBody(request);
    if (text === undefined) return failure(413, `the request is longer than ${MAX_BODY_BYTES} bytes`);
    const caller = { isRootful: uid === undefined || uid === ROOT };
    const path = request.url ?? "";
    return await respondToCall(driver, { path, text, caller }, (error) =>
      logger.error({ call: path.slice(0, 100), err: error }, "call of the volume plugin failed"),
    );
  }
}

/** Body of a request as text; undefined if it is too long. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
    else chunks.length = 0;
  }
  return bytes > MAX_BODY_BYTES ? undefined : Buffer.concat(chunks).toString("utf8");
}
