import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { GitError } from "../upstream/errors.ts";
import type { DirectSend, DirectState } from "../http/send-file/direct-send.ts";
import type { FileRange, FileSender } from "../http/send-file/file-sender.ts";
import { IdleTimer } from "../http/request/idle-timer.ts";

/** Milliseconds that a client may take no byte before its connection is closed. */
export const CLIENT_IDLE_MS = 300_000;

/** Ends the wait for one write. @param error why it failed; none: it was taken */
type Settle = (error?: unknown) => void;

/**
 * How sending a file ended. `reread`: all was sent, but the kernel may have read some of it from the disk again. `failed`:
 * a part was sent, and the rest cannot be read.
 */
export interface SentFile {
  readonly end: "sent" | "reread" | "failed" | "nothing";
  readonly sent: number;
}

const NOTHING_SENT: SentFile = { end: "nothing", sent: 0 };

/** The client's side of a response, with back-pressure and an end to clients that stopped reading. */
export class ClientSink {
  readonly response: ServerResponse;
  readonly #idle: IdleTimer;
  /** Callbacks of the writes that the operating system has not accepted yet. */
  readonly #waiting = new Set<Settle>();
  readonly #idleMs: number;
  #fileBytes = (): number => 0;
  #gone = false;
  /** Bytes that are not written, because the client has them. */
  #skipped: Buffer = Buffer.alloc(0);

  constructor(response: ServerResponse, idleMs = CLIENT_IDLE_MS) {
    this.response = response;
    this.#idleMs = idleMs;
    this.#idle = new IdleTimer(idleMs, () => response.destroy());
    this.#idle.pause();
    const gone = (): void => {
      this.#gone = true;
      this.#idle.stop();
      for (const settle of this.#waiting) settle(clientGone());
    };
    if (response.destroyed) gone();
    else response.once("close", gone);
  }

  /** Bytes that went past Node's socket, see {@link sendFile}. */
  get fileBytes(): number {
    return this.#fileBytes();
  }

  /**
   * Leaves out the next bytes that are written, because the client has them already. They must be these: writing others
   * throws GitError `upstream_foreign`.
   */
  skip(bytes: Buffer): void {
    this.#skipped = bytes;
  }

  /** Writes; resolves when more may be written. The bytes must stay as they are: Node keeps a reference. */
  async write(bytes: Buffer): Promise<void> {
    if (this.response.write(this.#unskipped(bytes))) return;
    await this.#watched((settle) => this.response.once("drain", () => settle()));
  }

  /** Writes several buffers with one call to the system; resolves when they are handed to it. */
  async writeAll(chunks: readonly Buffer[]): Promise<void> {
    const { socket } = this.response;
    const last = chunks.length - 1;
    const rest = this.#skipped.length === 0 ? chunks : chunks.map((chunk) => this.#unskipped(chunk));
    await this.#watched((settle) => {
      // The socket, not the response: a corked response reports a full buffer and then forgets to report its drain.
      socket?.cork();
      for (const [index, chunk] of rest.entries()) {
        if (index < last) this.response.write(chunk);
        else this.response.write(chunk, settle);
      }
      socket?.uncork();
    });
  }

  /** Writes; resolves when the bytes are handed to the system and their buffer may be used again. */
  async writeThrough(bytes: Buffer): Promise<void> {
    const rest = this.#unskipped(bytes);
    await this.#watched((settle) => this.response.write(rest, settle));
  }

  /** Whether {@link sendFile} can work on this connection now. */
  canSendFile(sender: FileSender): boolean {
    return !this.#gone && this.#waiting.size === 0 && sender.canSend(this.response.socket);
  }

  /**
   * Sends a range of a file without reading it, if the connection and the system can.
   *
   * @returns how it ended, and the bytes that were sent. After `nothing` and `failed` the connection still works
   * @throws GitError `client_gone`
   */
  async sendFile(sender: FileSender, range: FileRange): Promise<SentFile> {
    const { socket } = this.response;
    if (socket === null || !this.canSendFile(sender)) return NOTHING_SENT;
    const direct = sender.direct(socket, range);
    if (direct === undefined) return await this.#sendInThread(sender, socket, range, undefined);
    this.#fileBytes = () => direct.fileBytes;
    const state = await this.#sendDirectly(socket, direct);
    const { sent } = direct;
    if (state === "gone") throw this.#left();
    if (state === "sent") return { end: direct.isStillResident() ? "sent" : "reread", sent };
    if (sent === 0) return NOTHING_SENT;
    return state === "cold"
      ? await this.#sendInThread(sender, socket, direct.rest, direct)
      : { end: "failed", sent };
  }

  /** Sends in this thread. While the socket is full, Node waits for it with a few of the bytes. */
  async #sendDirectly(socket: Socket, direct: DirectSend): Promise<DirectState> {
    let state = direct.step();
    while (state === "full") {
      const bytes = direct.bridge();
      if (bytes === undefined) return "failed";
      // Past the response, which would gather its writes until the next tick.
      await this.#watched((settle) => socket.write(bytes, settle));
      state = direct.step();
    }
    return state;
  }

  /** @param direct what was sent before in this thread: the rest must follow, even if it is read from the disk */
  async #sendInThread(
    sender: FileSender,
    socket: Socket,
    range: FileRange,
    direct: DirectSend | undefined,
  ): Promise<SentFile> {
    const before = direct?.sent ?? 0;
    const beforeFileBytes = direct?.fileBytes ?? 0;
    const sending = sender.send(socket, range, this.#idleMs, direct !== undefined);
    if (sending === undefined) return before === 0 ? NOTHING_SENT : { end: "failed", sent: before };
    this.#fileBytes = () => beforeFileBytes + sending.sent();
    const { end } = await sending.report;
    const sent = before + sending.sent();
    if (end === "sent" || end === "reread") return { end, sent };
    if (end === "cold" || end === "failed") return sent === 0 ? NOTHING_SENT : { end: "failed", sent };
    throw this.#left();
  }

  #left(): GitError {
    this.response.destroy();
    return clientGone();
  }

  /** Ends the response. Time counts until the system has taken the last of it. */
  end(): void {
    this.#idle.resume();
    this.response.once("finish", () => this.#idle.stop());
    this.response.end();
  }

  /** Writes the last bytes of a response that failed, then breaks the connection: it must not look complete. */
  async fail(bytes: Buffer): Promise<void> {
    this.#skipped = Buffer.alloc(0);
    await this.writeThrough(bytes).catch(() => undefined);
    // One turn for the socket: `destroy` drops what the system has not taken.
    setImmediate(() => this.response.destroy());
  }

  #unskipped(bytes: Buffer): Buffer {
    const length = Math.min(this.#skipped.length, bytes.length);
    if (length === 0) return bytes;
    if (!bytes.subarray(0, length).equals(this.#skipped.subarray(0, length))) {
      throw new GitError("upstream_foreign", 502, "the code host gave no pack; try again");
    }
    this.#skipped = this.#skipped.subarray(length);
    return bytes.subarray(length);
  }

  /** The time runs while bytes wait. Each write that the system takes restarts it. */
  #watched(begin: (settle: Settle) => void): Promise<void> {
    if (this.#waiting.size === 0) this.#idle.resume();
    return new Promise((resolve, reject) => {
      const settle: Settle = (error) => {
        if (!this.#waiting.delete(settle)) return;
        if (this.#waiting.size === 0) this.#idle.pause();
        else this.#idle.touch();
        // A failed write reports its own error (EPIPE, ECONNRESET), sometimes ahead of the connection's end.
        if (error instanceof GitError) reject(error);
        else if (error !== undefined && error !== null) reject(clientGone(error));
        else resolve();
      };
      this.#waiting.add(settle);
      if (this.#gone) settle(clientGone());
      else begin(settle);
    });
  }
}

function clientGone(cause?: unknown): GitError {
  return new GitError("client_gone", 499, "the client left", { cause });
}
