import { readSync } from "node:fs";
import type { Socket } from "node:net";
import { constants } from "node:os";
import { lastErrno } from "@devplat/base/libc";
import { descriptorOf } from "@devplat/base/socket-descriptor";
import { isResident } from "./resident.ts";
import { systemCalls } from "./system-calls.ts";

/** A range of an open file. */
export interface FileRange {
  readonly fd: number;
  readonly offset: number;
  readonly length: number;
}

/**
 * State of a range: all is sent; the socket takes no more now; the kernel does not have the rest in memory; the client is gone; a
 * call failed.
 */
export type DirectState = "sent" | "full" | "cold" | "gone" | "failed";

/** Bytes that are written through Node to learn when the socket takes bytes again. */
const BRIDGE_BYTES = 4096;

const { EAGAIN, EINTR, EPIPE, ECONNRESET } = constants.errno;

/**
 * Sends a range of a file by sendfile(2) in the calling thread, without waiting. The file must stay open while it is used.
 */
export class DirectSend {
  readonly #socket: Socket;
  readonly #range: FileRange;
  /** Next byte of the file, for sendfile(2), which moves it. */
  readonly #offset = Buffer.alloc(8);
  #sent = 0;
  #bridged = 0;

  constructor(socket: Socket, range: FileRange) {
    this.#socket = socket;
    this.#range = range;
  }

  /** Bytes so far, with those of {@link bridge}. */
  get sent(): number {
    return this.#sent;
  }

  /** Bytes that went past Node's socket. */
  get fileBytes(): number {
    return this.#sent - this.#bridged;
  }

  /** The bytes that are not sent. */
  get rest(): FileRange {
    const { fd, offset, length } = this.#range;
    return { fd, offset: offset + this.#sent, length: length - this.#sent };
  }

  /** Sends as much as the socket takes. */
  step(): DirectState {
    const { fd, offset, length } = this.rest;
    // The event loop must not wait for a disk.
    if (!isResident(fd, offset, length)) return "cold";
    this.#offset.writeBigInt64LE(BigInt(offset));
    const { sendfile } = systemCalls();
    for (let left = length; left > 0;) {
      // Asked each time: the number of a closed descriptor may be that of another connection.
      const descriptor = descriptorOf(this.#socket);
      if (descriptor === undefined) return "gone";
      const count = sendfile(descriptor, fd, this.#offset, BigInt(left));
      if (count < 0) {
        const errno = lastErrno();
        if (errno === EINTR) continue;
        if (errno === EAGAIN) return "full";
        return errno === EPIPE || errno === ECONNRESET ? "gone" : "failed";
      }
      // The file became shorter.
      if (count === 0) return "failed";
      left -= count;
      this.#sent += count;
    }
    return "sent";
  }

  /**
   * Some of the next bytes, for a write by Node. They count as sent. When the system has taken them, the next step can follow.
   *
   * @returns undefined: they cannot be read
   */
  bridge(): Buffer | undefined {
    const { fd, offset, length } = this.rest;
    const bytes = Buffer.allocUnsafe(Math.min(BRIDGE_BYTES, length));
    try {
      if (readSync(fd, bytes, 0, bytes.length, offset) < bytes.length) return undefined;
    } catch {
      return undefined;
    }
    this.#sent += bytes.length;
    this.#bridged += bytes.length;
    return bytes;
  }

  /** Whether the kernel has all of the range in memory. Otherwise it may have read some of it from the disk again. */
  isStillResident(): boolean {
    const { fd, offset, length } = this.#range;
    return isResident(fd, offset, length);
  }
}
