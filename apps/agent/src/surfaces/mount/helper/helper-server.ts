import { closeSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { once } from "node:events";
import type { Logger } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import { AgentError, publicMessage } from "../../../errors.ts";
import { ListeningPlace, type ListeningOptions } from "../../listening/listening-place.ts";
import { isOwnUser } from "../../listening/peer-credentials.ts";
import { descriptorOf } from "@devplat/base/socket-descriptor";
import { sendMessage } from "../device/descriptor-passing.ts";
import { DONE, type HelperRequest } from "../device/mount-helper.ts";
import type { HelperMounts } from "./helper-mounts.ts";
import { parseRequest } from "./helper-request.ts";

/** Longest request, in characters. */
const MAX_REQUEST_CHARS = 8192;
/** Time for a request to arrive, in milliseconds. */
const REQUEST_LIMIT_MS = 5000;
const MAX_CONNECTIONS = 8;
/** A helper that a supervisor has started ends after this time without a request, in milliseconds. */
const IDLE_MS = 10_000;

export interface HelperServerOptions extends ListeningOptions {
  readonly mounts: HelperMounts;
  readonly logger: Logger;
}

/**
 * Mounts and unmounts for a daemon that cannot run `fusermount3`, because its service forbids new privileges. Only processes of
 * this user are served.
 */
export class HelperServer {
  readonly #options: HelperServerOptions;
  readonly #place: ListeningPlace;
  readonly #server: Server = createServer();
  /** Two mounts at one time could hide each other. */
  readonly #actions = new Serializer();
  readonly #idle = new AbortController();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: HelperServerOptions) {
    this.#options = options;
    this.#place = new ListeningPlace(options);
    this.#server.maxConnections = MAX_CONNECTIONS;
    this.#server.on("connection", (socket) => this.#serve(socket));
  }

  /** Serves until the signal fires, or nothing was asked for a while. @throws AgentError `socket_in_use` | `socket_refused` */
  async run(signal: AbortSignal): Promise<void> {
    const { logger } = this.#options;
    await this.#place.listen(this.#server);
    logger.info({ socket: this.#place.path, activated: this.#place.isActivated }, "mount helper listens");
    this.#restartTimer();
    const end = AbortSignal.any([signal, this.#idle.signal]);
    if (!end.aborted) await once(end, "abort");
    clearTimeout(this.#timer);
    await this.#place.remove();
    this.#server.close();
    await this.#actions.settled();
  }

  #restartTimer(): void {
    if (!this.#place.isActivated) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#idle.abort(), IDLE_MS);
  }

  #serve(socket: Socket): void {
    const { logger } = this.#options;
    this.#restartTimer();
    socket.on("error", () => socket.destroy());
    if (!isOwnUser(socket)) {
      logger.warn({ socket: this.#place.path }, "mount helper refused a program of another user");
      socket.destroy();
      return;
    }
    socket.setTimeout(REQUEST_LIMIT_MS, () => socket.destroy());
    let text = "";
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      const end = text.indexOf("\n");
      if (end === -1 && text.length <= MAX_REQUEST_CHARS) return;
      socket.removeAllListeners("data").setTimeout(0).resume();
      void this.#answer(socket, text.slice(0, Math.max(end, 0)));
    });
  }

  async #answer(socket: Socket, line: string): Promise<void> {
    const { logger } = this.#options;
    let device: number | undefined;
    try {
      const request = parseRequest(line);
      device = await this.#actions.run(() => this.#do(request));
      const connection = descriptorOf(socket);
      // Node cannot send this kind of descriptor. Nothing else was written to the socket.
      if (connection !== undefined) sendMessage(connection, DONE, device);
      socket.end();
      logger.info({ action: request.action, path: request.path }, "mount helper has done a request");
    } catch (error) {
      if (!(error instanceof AgentError))
        logger.error({ err: error }, "a request of the mount helper failed");
      else logger.warn({ reason: error.message }, "mount helper refused a request");
      socket.end(publicMessage(error));
    } finally {
      if (device !== undefined) closeSync(device);
    }
  }

  async #do(request: HelperRequest): Promise<number | undefined> {
    const { mounts } = this.#options;
    if (request.action === "mount") return await mounts.mount(request.path, request.maxReadBytes);
    await mounts.unmount(request.path, request.lazy);
    return undefined;
  }
}
