import type { ServerResponse } from "node:http";
import { GitError } from "./errors.ts";
import { IdleTimer } from "../http/idle-timer.ts";

/** Milliseconds that a client may take no byte before its connection is closed. */
export const CLIENT_IDLE_MS = 300_000;

/** The client's side of an answer, with back-pressure and an end to clients that stopped reading. */
export class ClientSink {
  readonly response: ServerResponse;
  readonly #gone: Promise<never>;
  readonly #idle: IdleTimer;
  /** Writes that the system has not taken. */
  #pending = 0;

  constructor(response: ServerResponse, idleMs = CLIENT_IDLE_MS) {
    this.response = response;
    this.#idle = new IdleTimer(idleMs, () => response.destroy());
    this.#idle.pause();
    const { promise, reject } = Promise.withResolvers<never>();
    this.#gone = promise;
    // It is a failure only for whoever is writing.
    promise.catch(() => undefined);
    const gone = (): void => {
      this.#idle.stop();
      reject(clientGone());
    };
    if (response.destroyed) gone();
    else response.once("close", gone);
  }

  /** Writes; resolves when more may be written. The bytes must stay as they are: Node keeps a reference. */
  async write(bytes: Buffer): Promise<void> {
    if (this.response.write(bytes)) return;
    await this.#watched(new Promise((resolve) => this.response.once("drain", resolve)));
  }

  /** Writes several buffers with one call to the system; resolves when they are handed to it. */
  async writeAll(chunks: readonly Buffer[]): Promise<void> {
    const { socket } = this.response;
    const last = chunks.length - 1;
    // The socket, not the response: a corked response reports a full buffer and then forgets to report its drain.
    socket?.cork();
    await this.#watched(
      new Promise<void>((resolve, reject) => {
        for (const [index, chunk] of chunks.entries()) {
          if (index < last) this.response.write(chunk);
          else this.response.write(chunk, (error) => (error ? reject(error) : resolve()));
        }
        socket?.uncork();
      }),
    );
  }

  /** Writes; resolves when the bytes are handed to the system and their buffer may be used again. */
  async writeThrough(bytes: Buffer): Promise<void> {
    await this.#watched(
      new Promise<void>((resolve, reject) => {
        this.response.write(bytes, (error) => (error ? reject(error) : resolve()));
      }),
    );
  }

  /** Ends the answer. Time counts until the system has taken the last of it. */
  end(): void {
    this.#idle.resume();
    this.response.once("finish", () => this.#idle.stop());
    this.response.end();
  }

  /** Writes the last bytes of an answer that failed, then breaks the connection: it must not look complete. */
  async fail(bytes: Buffer): Promise<void> {
    await this.writeThrough(bytes).catch(() => undefined);
    // One turn for the socket: `destroy` drops what the system has not taken.
    setImmediate(() => this.response.destroy());
  }

  /** Time counts while anything is on its way; only what is taken starts it anew. */
  async #watched(progress: Promise<unknown>): Promise<void> {
    if (this.#pending++ === 0) this.#idle.resume();
    try {
      await Promise.race([progress, this.#gone]);
    } catch (error) {
      // A failed write reports its own error (EPIPE, ECONNRESET), sometimes ahead of the connection's end.
      throw error instanceof GitError ? error : clientGone(error);
    } finally {
      if (--this.#pending === 0) this.#idle.pause();
      else this.#idle.touch();
    }
  }
}

function clientGone(cause?: unknown): GitError {
  return new GitError("client_gone", 499, "the client left", { cause });
}
