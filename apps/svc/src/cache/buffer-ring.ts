/** Bytes of one buffer: the size at which reading from the page cache costs least per byte (measured, ENGINE notes). */
const BUFFER_BYTES = 512 * 1024;
/** With more senders than this, smaller buffers, so that 200 clones at once take tens of megabytes, not hundreds. */
const MANY_RINGS = 24;
const SMALL_BUFFER_BYTES = 128 * 1024;
/** Large buffers that are kept for the next sender. */
const MAX_IDLE_BUFFERS = 16;

const idle: Buffer[] = [];
let rings = 0;

/** Two buffers in turn: one is filled from disk while the other is on its way to the client. */
export class BufferRing {
  readonly #size: number;
  readonly #buffers: Buffer[] = [];
  readonly #busy: Promise<void>[] = [Promise.resolve(), Promise.resolve()];
  #next = 0;
  #failed: unknown;
  /** Buffers that are on their way to a client. */
  #sending = 0;

  constructor() {
    rings++;
    this.#size = rings > MANY_RINGS ? SMALL_BUFFER_BYTES : BUFFER_BYTES;
  }

  /** The next buffer, once it is free. @throws what the sending of an earlier one failed with */
  async take(): Promise<Buffer> {
    await this.#busy[this.#next];
    if (this.#failed !== undefined) throw this.#failed;
    return (this.#buffers[this.#next] ??= takeBuffer(this.#size));
  }

  /** The buffer taken last is in use until then. */
  sending(sent: Promise<void>): void {
    this.#sending++;
    this.#busy[this.#next] = sent.then(
      () => void this.#sending--,
      (error: unknown) => {
        this.#failed = error;
      },
    );
    this.#next = 1 - this.#next;
  }

  /** Waits until nothing is on its way. @throws as `take` */
  async drained(): Promise<void> {
    await Promise.all(this.#busy);
    if (this.#failed !== undefined) throw this.#failed;
  }

  /**
   * Gives the buffers back. While one is on its way, or if one did not arrive, they are left to the garbage collector:
   * a buffer that another sender fills while the kernel still takes bytes from it would give them to the wrong client.
   */
  release(): void {
    rings--;
    if (this.#sending > 0) return;
    for (const buffer of this.#buffers) {
      if (buffer.length === BUFFER_BYTES && idle.length < MAX_IDLE_BUFFERS) idle.push(buffer);
    }
  }
}

function takeBuffer(size: number): Buffer {
  return (size === BUFFER_BYTES ? idle.pop() : undefined) ?? Buffer.allocUnsafeSlow(size);
}
