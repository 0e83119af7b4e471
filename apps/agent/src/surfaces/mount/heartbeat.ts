import type { Clock } from "@devplat/base";

/** Time from one ping to the next, in milliseconds. */
const PING_INTERVAL_MS = 5000;
/** Pings without a response after which a process is given up. One can be without while this process itself was stopped. */
const MAX_UNANSWERED = 2;

export interface HeartbeatParts {
  readonly ping: () => void;
  readonly clock: Clock;
  /** Called when the process has not responded to a ping in its time, and when it responds again. */
  readonly onSilence: (isSilent: boolean) => void;
}

/** Asks a process again and again whether it responds. */
export class Heartbeat {
  readonly #parts: HeartbeatParts;
  #unanswered = 0;
  #isSilent = false;

  constructor(parts: HeartbeatParts) {
    this.#parts = parts;
  }

  /** The process has responded. */
  answered(): void {
    if (this.#isSilent) this.#setSilent(false);
    this.#unanswered = 0;
  }

  /** Resolves when the process has not responded for a time, or after the signal. @returns that time in milliseconds */
  async run(signal: AbortSignal): Promise<number | undefined> {
    const { ping, clock } = this.#parts;
    while (!signal.aborted) {
      ping();
      this.#unanswered++;
      await clock.sleep(PING_INTERVAL_MS, signal).catch(() => undefined);
      if (signal.aborted) break;
      if (this.#unanswered >= MAX_UNANSWERED) return this.#unanswered * PING_INTERVAL_MS;
      if (this.#unanswered > 0) this.#setSilent(true);
    }
    return undefined;
  }

  #setSilent(isSilent: boolean): void {
    this.#isSilent = isSilent;
    this.#parts.onSilence(isSilent);
  }
}
