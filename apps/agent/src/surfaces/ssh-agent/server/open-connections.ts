import type { Socket } from "node:net";
import type { ServedConnection } from "./serve-connection.ts";

/** The connections of one socket. A new one is never refused while an idle one can be closed for it. */
export class OpenConnections {
  readonly #max: number;
  /** In the order of their last message, the longest idle one first. Undefined until a connection is served. */
  readonly #served = new Map<Socket, ServedConnection | undefined>();

  /** @param max connections that are open at the same time */
  constructor(max: number) {
    this.#max = max;
  }

  get sockets(): readonly Socket[] {
    return [...this.#served.keys()];
  }

  /**
   * Takes a new connection. At the limit it closes another one: a forwarded one, else one that waits for no answer.
   * @returns the connection that is closed: the new one, if all others wait for an answer. Undefined below the limit
   */
  add(socket: Socket): Socket | undefined {
    const closed = this.#served.size < this.#max ? undefined : (this.#expendable() ?? socket);
    this.#served.set(socket, undefined);
    socket.once("close", () => this.#served.delete(socket));
    if (closed === undefined) return undefined;
    this.#served.delete(closed);
    closed.destroy();
    return closed;
  }

  /** Records that a connection is served. */
  serve(socket: Socket, served: ServedConnection): void {
    if (this.#served.has(socket)) this.#served.set(socket, served);
  }

  /** Records that a connection has sent a message. */
  touch(socket: Socket): void {
    if (!this.#served.has(socket)) return;
    const served = this.#served.get(socket);
    this.#served.delete(socket);
    this.#served.set(socket, served);
  }

  /** A host that the agent is forwarded to must not keep out programs of this machine. */
  #expendable(): Socket | undefined {
    const all = [...this.#served];
    const forwarded = all.filter(([, served]) => served?.isForwarded);
    const isIdle = ([, served]: [Socket, ServedConnection | undefined]): boolean =>
      served?.isAnswering !== true;
    const [socket] = forwarded.find(isIdle) ?? forwarded[0] ?? all.find(isIdle) ?? [];
    return socket;
  }
}
