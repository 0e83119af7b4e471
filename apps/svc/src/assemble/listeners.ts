import { createConnection } from "node:net";
import { chmod, unlink } from "node:fs/promises";
import { bindLocalhost, messageOf, systemCode } from "@devplat/base";
import { formatListen, type ListenAddress } from "../config/listen.ts";
import { SvcError } from "../errors.ts";
import type { WebServer } from "../http/server/web-server.ts";

/** Milliseconds between two looks for connections without a request while the last ones finish. */
const IDLE_CLOSE_MS = 100;

/** A proxy in front runs as another user, of the same group. */
const SOCKET_MODE = 0o660;

/** Listeners of one address: two where `localhost` means two addresses. */
export class Listening {
  readonly #servers: WebServer[] = [];
  readonly #create: () => WebServer;
  readonly #setting: string;

  /**
   * @param create makes one more server with the same behaviour
   * @param setting name of the configuration key, for messages
   */
  constructor(create: () => WebServer, setting: string) {
    this.#create = create;
    this.#setting = setting;
  }

  /**
   * Binds the address. `localhost`, and with `loopbackOnly` an address without a host, means 127.0.0.1 and ::1, or the one
   * that this machine has.
   *
   * @returns the port; 0 for a Unix socket
   * @throws SvcError `listen_failed` naming the address
   */
  async open(address: ListenAddress, loopbackOnly: boolean): Promise<number> {
    if (address.kind === "unix") {
      await this.#bindSocket(address.path);
      return 0;
    }
    if (address.kind === "inherited") return this.#bind(address);
    const isLocalhost =
      address.host === undefined ? loopbackOnly : address.host.toLowerCase() === "localhost";
    if (!isLocalhost) return this.#bind(address);
    const bind = (host: string, port: number): Promise<number> => this.#bind({ kind: "tcp", host, port });
    const { port } = await bindLocalhost(address.port, bind, async () => {
      for (const { server } of this.#servers.splice(0)) server.close();
    });
    return port;
  }

  /** Takes no more connections, lets running requests finish for as long as `graceMs`, and then cuts them off. */
  async close(graceMs: number): Promise<void> {
    const closed = this.#servers.map(
      async ({ server }) => new Promise<void>((resolve) => server.close(() => resolve())),
    );
    const idle = setInterval(() => {
      for (const server of this.#servers) server.closeIdle();
    }, IDLE_CLOSE_MS);
    const grace = setTimeout(() => {
      for (const server of this.#servers) server.closeAll();
    }, graceMs);
    try {
      await Promise.all(closed);
    } finally {
      clearInterval(idle);
      clearTimeout(grace);
    }
  }

  async #bindSocket(path: string): Promise<void> {
    try {
      await this.#bind({ kind: "unix", path });
    } catch (error) {
      // A socket file that nobody answers on is what a killed process left.
      if (systemCode((error as Error).cause) !== "EADDRINUSE" || (await answers(path))) throw error;
      await unlink(path);
      await this.#bind({ kind: "unix", path });
    }
    await chmod(path, SOCKET_MODE);
  }

  async #bind(address: ListenAddress): Promise<number> {
    const made = this.#create();
    const { server } = made;
    try {
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject);
        server.once("listening", resolve);
        if (address.kind === "unix") server.listen(address.path);
        else if (address.kind === "inherited") server.listen({ fd: address.descriptor });
        else
          server.listen({
            port: address.port,
            ...(address.host === undefined ? {} : { host: address.host }),
          });
      });
    } catch (error) {
      throw this.#failure(address, error);
    }
    this.#servers.push(made);
    const bound = server.address();
    return bound === null || typeof bound === "string" ? 0 : bound.port;
  }

  #failure(address: ListenAddress, cause: unknown): SvcError {
    const shown = formatListen(address);
    const code = systemCode(cause);
    const found =
      code === "EADDRINUSE"
        ? "another program listens there"
        : code === "EACCES"
          ? "no permission"
          : code === "EADDRNOTAVAIL"
            ? "this machine does not have that address"
            : messageOf(cause);
    return new SvcError("listen_failed", `Cannot listen on ${shown}: ${found}`, {
      cause,
      hint: `Free it, or choose another address with ${this.#setting}.`,
    });
  }
}

async function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
