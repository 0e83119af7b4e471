import { readSync, writeSync } from "node:fs";
import { encodeFrame, FrameReader } from "../channel/frames.ts";
import type { DaemonMessage, ServerMessage } from "../channel/messages.ts";
import { setNonBlocking } from "../device/non-blocking.ts";

const READ_BYTES = 256 * 1024;

/** The mount server's end of the channel to the daemon. Its calls never wait. */
export class ChannelEnd {
  readonly descriptor: number;
  readonly #buffer = Buffer.alloc(READ_BYTES);
  readonly #frames = new FrameReader<DaemonMessage>();
  /** Bytes that the daemon has not taken yet. */
  readonly #outgoing: Buffer[] = [];

  constructor(descriptor: number) {
    this.descriptor = descriptor;
    setNonBlocking(descriptor);
  }

  /** Whether {@link flush} has to be called when the daemon takes bytes again. */
  get hasOutgoing(): boolean {
    return this.#outgoing.length > 0;
  }

  send(message: ServerMessage): void {
    this.#outgoing.push(encodeFrame(message));
    if (this.#outgoing.length === 1) this.flush();
  }

  /** Writes what the daemon takes now. */
  flush(): void {
    for (let first = this.#outgoing[0]; first !== undefined; first = this.#outgoing[0]) {
      const written = ignoringWait(() => writeSync(this.descriptor, first));
      if (written === undefined) return;
      if (written < first.length) this.#outgoing[0] = first.subarray(written);
      else this.#outgoing.shift();
    }
  }

  /** Messages that have arrived; undefined when the daemon has ended. */
  receive(): DaemonMessage[] | undefined {
    const length = ignoringWait(() => readSync(this.descriptor, this.#buffer));
    if (length === undefined) return [];
    return length === 0 ? undefined : this.#frames.push(Buffer.from(this.#buffer.subarray(0, length)));
  }
}

/** @returns undefined if the call would have to wait; 0 after the end of the daemon */
function ignoringWait(call: () => number): number | undefined {
  try {
    return call();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EAGAIN") return undefined;
    if (code === "EPIPE" || code === "ECONNRESET") return 0;
    throw error;
  }
}
