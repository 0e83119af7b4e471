import { constants } from "node:os";
import { AgentError } from "../../../errors.ts";
import { lastErrno } from "@devplat/base/libc";
import { lastErrorName, systemCalls } from "./system-calls.ts";

/** `struct pollfd`: descriptor, events, and events that came. */
const POLLFD_BYTES = 8;
const POLLIN = 1;
const TIMESPEC_BYTES = 16;
const MS_PER_SECOND = 1000;
const NS_PER_MS = 1_000_000;

/** Waits for a few descriptors (ppoll(2)), and blocks the thread while it waits. Allocates nothing. */
export class Poller {
  readonly #entries: Buffer;
  readonly #count: bigint;
  readonly #timeout = Buffer.alloc(TIMESPEC_BYTES);

  constructor(descriptors: readonly number[]) {
    this.#entries = Buffer.alloc(descriptors.length * POLLFD_BYTES);
    this.#count = BigInt(descriptors.length);
    descriptors.forEach((descriptor, index) => {
      this.#entries.writeInt32LE(descriptor, index * POLLFD_BYTES);
      this.#entries.writeInt16LE(POLLIN, index * POLLFD_BYTES + 4);
    });
  }

  /**
   * Waits until a descriptor can be read, has ended, or has an error. A signal ends the wait, but not one that came
   * immediately before: choose a time that a signal may wait for its handler.
   *
   * @returns whether {@link isReady} holds for a descriptor
   */
  wait(timeoutMs: number): boolean {
    const seconds = Math.floor(timeoutMs / MS_PER_SECOND);
    this.#timeout.writeUInt32LE(seconds, 0);
    this.#timeout.writeUInt32LE(Math.floor((timeoutMs - seconds * MS_PER_SECOND) * NS_PER_MS), 8);
    const ready = systemCalls().ppoll(this.#entries, this.#count, this.#timeout, 0n);
    if (ready >= 0) return ready > 0;
    if (lastErrno() !== constants.errno.EINTR)
      throw new AgentError("mount_failed", `cannot wait for the mount's device: ${lastErrorName()}`);
    // The call has not written the events.
    for (let index = 0; index < this.#entries.length; index += POLLFD_BYTES)
      this.#entries.writeInt16LE(0, index + 6);
    return false;
  }

  /** As {@link wait}, but looks again and again, and lets other threads run in between. For a time of some microseconds. */
  spin(timeoutMs: number): boolean {
    const untilMs = performance.now() + timeoutMs;
    do {
      if (this.wait(0)) return true;
      systemCalls().sched_yield();
    } while (performance.now() < untilMs);
    return false;
  }

  /** Whether the descriptor with this index was ready in the last wait. */
  isReady(index: number): boolean {
    return this.#entries.readInt16LE(index * POLLFD_BYTES + 6) !== 0;
  }
}
