import { once } from "node:events";
import type { Server } from "node:net";
import { AgentError } from "../../errors.ts";
import { systemPlatform } from "../../platform/platform.ts";
import { descriptorPath } from "./activation.ts";
import { isPipeName } from "./pipe-name.ts";
import { checkActivated, listenOnPath, type PlacedSocket } from "./socket-place.ts";

export interface ListeningOptions {
  /** Absolute path of the socket. On Windows the name of a pipe. */
  readonly path: string;
  /** A listening socket that a supervisor has opened; then the path is the supervisor's. */
  readonly descriptor: number | undefined;
}

/** Where a server listens: at a path of its own, or on the socket of a supervisor. */
export class ListeningPlace {
  readonly #options: ListeningOptions;
  #path: string;
  #placed: PlacedSocket | undefined;

  constructor(options: ListeningOptions) {
    this.#options = options;
    this.#path = options.path;
  }

  get path(): string {
    return this.#path;
  }

  /** Whether a supervisor has opened the socket. */
  get isActivated(): boolean {
    return this.#options.descriptor !== undefined;
  }

  /** @throws AgentError `socket_in_use` | `socket_refused` */
  async listen(server: Server): Promise<void> {
    const { path, descriptor } = this.#options;
    if (descriptor === undefined) {
      this.#placed = await listenAt(server, path);
      return;
    }
    this.#path = await checkActivated(await descriptorPath(descriptor));
    server.listen({ fd: descriptor });
    await once(server, "listening");
  }

  /** Removes the file, so that no new client connects. The socket of a supervisor stays. */
  async remove(): Promise<void> {
    await this.#placed?.remove();
  }
}

async function listenAt(server: Server, address: string): Promise<PlacedSocket> {
  if (!isPipeName(address)) return await listenOnPath(server, address);
  // Elsewhere it would become a file in the current folder.
  if (!systemPlatform.hasNamedPipes) {
    throw new AgentError("socket_refused", `cannot open the pipe ${address}: only Windows has named pipes`, {
      hint: "Set the path of a socket, such as ~/.daemon-sockets/own.sock.",
    });
  }
  // Only Windows loads what starts PowerShell.
  const { listenOnPipe, restrictByPowershell } = await import("./named-pipe.ts");
  return await listenOnPipe(server, address, restrictByPowershell(process.env));
}
