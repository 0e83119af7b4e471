import type { Socket } from "node:net";

/** Maximum number of accepted connections. More are closed. A browser with pages, streams and downloads needs tens. */
const MAX_ACCEPTED = 256;
/**
 * Connections whose owner is not known yet, or that have shown no session or key. Other users can open as
 * many as they like, so the oldest is closed for a new one: they cannot keep the daemon's user out.
 */
const MAX_UNKNOWN = 512;
/** Connections of other users, who get a refusal in words, or a probe's response. The oldest is closed for a new one. */
const MAX_FOREIGN = 16;
/** Such a connection is closed after this time, in milliseconds: more than a probe needs. */
const FOREIGN_LIFETIME_MS = 5000;

/**
 * All connections that there may be, including those that are being closed: a limit for descriptors that no user reaches
 * by holding connections.
 */
export const MAX_WEB_CONNECTIONS = 2 * (MAX_ACCEPTED + MAX_UNKNOWN + MAX_FOREIGN);

/** The connections of the web port, counted apart by who holds them. */
export class Connections {
  readonly #accepted = new Set<Socket>();
  /** Insertion order is age order. */
  readonly #unknown = new Set<Socket>();
  readonly #foreign = new Set<Socket>();

  /** A connection was accepted. */
  add(socket: Socket): void {
    put(socket, this.#unknown, MAX_UNKNOWN);
    socket.once("close", () => {
      for (const set of [this.#accepted, this.#unknown, this.#foreign]) set.delete(socket);
    });
  }

  /** The connection belongs to the daemon's user, or has shown a session or the key. */
  accept(socket: Socket): void {
    if (!this.#unknown.delete(socket)) return;
    if (this.#accepted.size >= MAX_ACCEPTED) socket.destroy();
    else this.#accepted.add(socket);
  }

  /** The connection belongs to another user. */
  refuse(socket: Socket): void {
    if (!this.#unknown.delete(socket)) return;
    put(socket, this.#foreign, MAX_FOREIGN);
    const end = setTimeout(() => socket.destroy(), FOREIGN_LIFETIME_MS).unref();
    socket.once("close", () => clearTimeout(end));
  }
}

function put(socket: Socket, set: Set<Socket>, max: number): void {
  for (const oldest of set) {
    if (set.size < max) break;
    set.delete(oldest);
    oldest.destroy();
  }
  set.add(socket);
}
