import type { Clock } from "@devplat/base";

/** Milliseconds for which a request waits for every transfer. */
const PATIENCE_MS = 5000;
/** Longest time in milliseconds that a transfer may still take after that, as `share_wait_seconds` for other instances. */
const MAX_LEFT_MS = 10_000;

/** Progress of a transfer, which says whether it is worth waiting for. */
export class TransferProgress {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #startedAt: number;
  #beganAt: number | undefined;
  #total = 0;
  #received = 0;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
  }

  /** Bytes of all files are known, and the first one is requested. A repetition counts from here. */
  begin(bytes: number): void {
    this.#beganAt = this.#clock.monotonic();
    this.#total = bytes;
    this.#received = 0;
  }

  add(bytes: number): void {
    this.#received += bytes;
  }

  /** Whether the rest will come soon, at the rate until now. */
  get isWorthWaiting(): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#startedAt < PATIENCE_MS) return true;
    if (this.#beganAt === undefined || this.#received === 0) return false;
    const msPerByte = (now - this.#beganAt) / this.#received;
    return (this.#total - this.#received) * msPerByte <= MAX_LEFT_MS;
  }
}
