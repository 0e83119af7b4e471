import type { Socket } from "node:net";
import { Worker } from "node:worker_threads";
import { descriptorOf } from "@devplat/base/socket-descriptor";
import { bringIntoMemory, type ComparedFile } from "./bring-into-memory.ts";
import { DirectSend, type FileRange } from "./direct-send.ts";
import { SEND_THREAD } from "./entries.ts";
import type { SendReport, ThreadMessage } from "./messages.ts";
import { SendBudget } from "./send-budget.ts";
import { systemCalls } from "./system-calls.ts";

const F_DUPFD_CLOEXEC = 1030;
const EFD_CLOEXEC = 0o2_000_000;
const EFD_NONBLOCK = 0o4000;
/** Adds one to the counter of an eventfd. */
const ONE = Buffer.from([1, 0, 0, 0, 0, 0, 0, 0]);
/** Megabytes (2^20 bytes) of the thread's heap for new objects. */
const YOUNG_MB = 1;
/** Longer ranges are always left to the thread. 16 MiB take the calling thread about 2 ms. */
const MAX_DIRECT_BYTES = 16 * 1024 * 1024;

export type { FileRange } from "./direct-send.ts";

/** A range that is being sent. */
export interface Sending {
  /** Bytes so far. */
  sent(): number;
  /** Never rejects. */
  readonly report: Promise<SendReport>;
}

/**
 * Sends ranges of files on plain TCP sockets by sendfile(2): the bytes never pass through this process. Short ranges are sent by
 * the calling thread, unless there are many of them. All others are left to a thread of its own, which waits for slow clients.
 * It works on duplicates of both descriptors, made here and closed there alone, so that a descriptor's number is never that
 * of another file while the thread uses it.
 */
export class FileSender {
  #worker: Worker | undefined;
  #wake = -1;
  #nextId = 0;
  #broken = process.platform !== "linux";
  readonly #waiting = new Map<number, PromiseWithResolvers<SendReport>>();
  readonly #budget = new SendBudget();
  readonly #onExit = (): void => this.#stopAll();

  /** Whether {@link send} can work on this socket: plain TCP, everything written before it is at the kernel. */
  canSend(socket: Socket | null): socket is Socket {
    return (
      !this.#broken &&
      socket !== null &&
      // Each TLSSocket has it, and no other socket (Node, "tlsSocket.encrypted").
      !("encrypted" in socket) &&
      !socket.destroyed &&
      socket.writableLength === 0 &&
      descriptorOf(socket) !== undefined
    );
  }

  /**
   * Makes sure that the kernel has the first bytes of a file in memory, see {@link bringIntoMemory}.
   *
   * @returns false: they cannot be sent in this way. The one who reads them finds the damage, if that is the reason
   */
  async bringIntoMemory(file: ComparedFile, size: number): Promise<boolean> {
    if (!this.#bound()) return false;
    return await bringIntoMemory(file, size).catch(() => false);
  }

  /** @returns undefined: the range is for {@link send}, because it is long, or because much was sent just now */
  direct(socket: Socket, range: FileRange): DirectSend | undefined {
    if (range.length > MAX_DIRECT_BYTES || !this.#bound()) return undefined;
    return this.#budget.take(range.length) ? new DirectSend(socket, range) : undefined;
  }

  /**
   * Sends a range of a file in the thread. Until the report is there, nothing else may be written to the socket.
   *
   * @param idleMs milliseconds in which the client must take a byte
   * @param reread whether a file that is not in memory is sent, too; then the report says so
   * @returns undefined, with nothing sent, when it cannot be sent in this way
   */
  send(socket: Socket, range: FileRange, idleMs: number, reread = false): Sending | undefined {
    const descriptors = this.#prepare(socket, range);
    if (descriptors === undefined) return undefined;
    const { offset, length } = range;
    const id = this.#nextId++;
    const progress = new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT));
    const waiting = Promise.withResolvers<SendReport>();
    this.#waiting.set(id, waiting);
    const gone = (): void => this.#post({ kind: "stop", id });
    socket.once("close", gone);
    this.#worker!.ref();
    this.#post({ kind: "send", job: { ...descriptors, id, offset, length, progress, idleMs, reread } });
    const report = waiting.promise.finally(() => {
      socket.off("close", gone);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) this.#worker?.unref();
    });
    return { sent: () => progress[0]!, report };
  }

  async close(): Promise<void> {
    this.#broken = true;
    this.#stopAll();
    await Promise.all([...this.#waiting.values()].map(({ promise }) => promise));
    const worker = this.#worker;
    this.#worker = undefined;
    process.off("exit", this.#onExit);
    await worker?.terminate();
    if (this.#wake >= 0) systemCalls().close(this.#wake);
    this.#wake = -1;
  }

  /** Whether the C library can be called. */
  #bound(): boolean {
    if (this.#broken) return false;
    try {
      systemCalls();
      return true;
    } catch {
      this.#broken = true;
      return false;
    }
  }

  #prepare(socket: Socket, range: FileRange): { readonly socket: number; readonly file: number } | undefined {
    const descriptor = descriptorOf(socket);
    if (descriptor === undefined || this.#broken) return undefined;
    try {
      const { fcntl, close } = systemCalls();
      this.#worker ??= this.#start();
      const own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
      if (own < 0) return undefined;
      const file = fcntl(range.fd, F_DUPFD_CLOEXEC, 0);
      if (file >= 0) return { socket: own, file };
      close(own);
      return undefined;
    } catch {
      // This Node cannot call the C library.
      this.#broken = true;
      return undefined;
    }
  }

  #start(): Worker {
    const wake = systemCalls().eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake < 0) throw new Error("no eventfd");
    this.#wake = wake;
    const worker = new Worker(SEND_THREAD, {
      workerData: wake,
      env: {},
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    worker.on("message", (report: SendReport) => this.#waiting.get(report.id)?.resolve(report));
    worker.on("error", () => this.#failed(worker));
    worker.on("exit", () => this.#failed(worker));
    // A thread that waits in poll(2) would delay the end of the process.
    process.on("exit", this.#onExit);
    return worker;
  }

  /** The thread ended, which it never does: its descriptors are lost with it, so the clients must be let go. */
  #failed(worker: Worker): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    this.#broken = true;
    for (const [id, { resolve }] of this.#waiting) resolve({ id, end: "failed" });
  }

  #stopAll(): void {
    for (const id of this.#waiting.keys()) this.#post({ kind: "stop", id });
  }

  #post(message: ThreadMessage): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
    this.#worker?.postMessage(message);
    if (this.#wake >= 0) systemCalls().write(this.#wake, ONE, 8n);
  }
}
