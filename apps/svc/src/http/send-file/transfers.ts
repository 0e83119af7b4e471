import { constants } from "node:os";
import { lastErrno } from "@devplat/base/libc";
import type { SendEnd, SendJob, SendReport } from "./messages.ts";
import { isResident } from "./resident.ts";
import { systemCalls } from "./system-calls.ts";

/** Bytes that one client gets before the others have their turn. */
const TURN_BYTES = 4 * 1024 * 1024;
/** `struct pollfd`: descriptor, events, and events that came. */
const POLLFD_BYTES = 8;
const POLLIN = 1;
const POLLOUT = 4;
/** Maximum wait, ms. Idle clients are noticed after it, a process that exits waits no longer. */
const WAIT_MS = 1000;

const { EAGAIN, EINTR, EPIPE, ECONNRESET } = constants.errno;

interface Transfer {
  readonly job: SendJob;
  /** Next byte of the file, for sendfile(2), which moves it. */
  readonly offset: Buffer;
  /** In `performance.now()`. */
  lastByteAt: number;
}

/** Sends ranges of files to many sockets, each as fast as its client reads. It blocks the thread while it waits. */
export class Transfers {
  readonly #wake: number;
  readonly #report: (report: SendReport) => void;
  readonly #transfers = new Map<number, Transfer>();
  readonly #counter = Buffer.alloc(8);
  /** The descriptors of the last wait, with the wake-up first; undefined after a change. */
  #entries: Buffer | undefined;

  /** @param wake descriptor of an eventfd that ends a wait */
  constructor(wake: number, report: (report: SendReport) => void) {
    this.#wake = wake;
    this.#report = report;
  }

  get size(): number {
    return this.#transfers.size;
  }

  begin(job: SendJob): void {
    const offset = Buffer.alloc(8);
    offset.writeBigInt64LE(BigInt(job.offset));
    const transfer: Transfer = { job, offset, lastByteAt: performance.now() };
    this.#transfers.set(job.id, transfer);
    this.#entries = undefined;
    // Pages that the kernel must read again were not compared with their checksums since.
    if (!job.reread && !isResident(job.file, job.offset, job.length)) this.#end(transfer, "cold");
    else this.#send(transfer);
  }

  stop(id: number): void {
    const transfer = this.#transfers.get(id);
    if (transfer !== undefined) this.#end(transfer, "gone");
  }

  /** Waits until a client can take bytes or a message has come, and sends what can be sent. */
  turn(): void {
    const transfers = [...this.#transfers.values()];
    const entries = (this.#entries ??= this.#pollEntries(transfers));
    const ready = systemCalls().poll(entries, BigInt(entries.length / POLLFD_BYTES), WAIT_MS);
    if (ready > 0) {
      if (entries.readInt16LE(6) !== 0) systemCalls().read(this.#wake, this.#counter, 8n);
      for (const [index, transfer] of transfers.entries()) {
        if (entries.readInt16LE((index + 1) * POLLFD_BYTES + 6) !== 0) this.#send(transfer);
      }
    }
    const now = performance.now();
    for (const transfer of transfers) {
      if (now - transfer.lastByteAt >= transfer.job.idleMs && this.#transfers.has(transfer.job.id)) {
        this.#end(transfer, "idle");
      }
    }
  }

  #send(transfer: Transfer): void {
    const { job, offset } = transfer;
    const { progress } = job;
    const { sendfile } = systemCalls();
    for (let left = TURN_BYTES; left > 0;) {
      const count = Math.min(left, job.length - progress[0]!);
      const sent = sendfile(job.socket, job.file, offset, BigInt(count));
      if (sent < 0) {
        const errno = lastErrno();
        if (errno === EINTR) continue;
        if (errno === EAGAIN) return;
        this.#end(transfer, errno === EPIPE || errno === ECONNRESET ? "gone" : "failed");
        return;
      }
      // The file became shorter.
      if (sent === 0) {
        this.#end(transfer, "failed");
        return;
      }
      progress[0]! += sent;
      transfer.lastByteAt = performance.now();
      left -= sent;
      if (progress[0] === job.length) {
        // Pages that were read again in between were not compared with their checksums.
        const isReread = job.reread || !isResident(job.file, job.offset, job.length);
        this.#end(transfer, isReread ? "reread" : "sent");
        return;
      }
    }
  }

  #end({ job }: Transfer, end: SendEnd): void {
    this.#transfers.delete(job.id);
    this.#entries = undefined;
    const { close } = systemCalls();
    close(job.socket);
    close(job.file);
    this.#report({ id: job.id, end });
  }

  #pollEntries(transfers: readonly Transfer[]): Buffer {
    const entries = Buffer.alloc((transfers.length + 1) * POLLFD_BYTES);
    entries.writeInt32LE(this.#wake, 0);
    entries.writeInt16LE(POLLIN, 4);
    for (const [index, { job }] of transfers.entries()) {
      entries.writeInt32LE(job.socket, (index + 1) * POLLFD_BYTES);
      entries.writeInt16LE(POLLOUT, (index + 1) * POLLFD_BYTES + 4);
    }
    return entries;
  }
}
