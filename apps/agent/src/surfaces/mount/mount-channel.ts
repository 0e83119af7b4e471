import type { Duplex } from "node:stream";
import { encodeFrame, FrameReader } from "./channel/frames.ts";
import type { DaemonMessage, MountRequest, ServerMessage } from "./channel/messages.ts";
import { MountFault, type MountRequests } from "./mount-requests.ts";

/** Messages of the mount server that are not requests. */
export type ServerNotice = Exclude<ServerMessage, { kind: "request" | "cancel" }>;

/** The daemon's end of the channel to the mount server. */
export class MountChannel {
  readonly #stream: Duplex;
  readonly #requests: MountRequests;
  readonly #onNotice: (notice: ServerNotice) => void;
  readonly #frames = new FrameReader<ServerMessage>();
  readonly #running = new Map<number, AbortController>();

  constructor(stream: Duplex, requests: MountRequests, onNotice: (notice: ServerNotice) => void) {
    this.#stream = stream;
    this.#requests = requests;
    this.#onNotice = onNotice;
    stream.on("data", (bytes: Buffer) => {
      try {
        for (const message of this.#frames.push(bytes)) this.#receive(message);
      } catch (error) {
        stream.destroy(error as Error);
      }
    });
    // The end of the process is what counts.
    stream.on("error", () => undefined);
    stream.on("close", () => {
      for (const end of this.#running.values()) end.abort();
      this.#running.clear();
    });
  }

  send(message: DaemonMessage): void {
    if (!this.#stream.destroyed) this.#stream.write(encodeFrame(message));
  }

  /** Ends the mount server. Files that are still open on a mount that is hidden get errors then. */
  close(): void {
    this.#stream.end();
  }

  #receive(message: ServerMessage): void {
    if (message.kind === "request") void this.#answer(message.id, message.request);
    else if (message.kind === "cancel") this.#running.get(message.id)?.abort();
    else this.#onNotice(message);
  }

  async #answer(id: number, request: MountRequest): Promise<void> {
    const end = new AbortController();
    this.#running.set(id, end);
    try {
      this.send({ kind: "reply", id, reply: await this.#requests.answer(request, end.signal) });
    } catch (error) {
      this.send({ kind: "fault", id, code: error instanceof MountFault ? error.code : "failed" });
    } finally {
      this.#running.delete(id);
    }
  }
}
