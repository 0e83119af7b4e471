import { FuseProtocolError, type FuseOperation } from "@devplat/fuse-protocol";
import type { Timers } from "../timers.ts";
import { FileError } from "../tree/file-error.ts";
import type { Reply } from "../tree/reply.ts";
import type { ReplySender } from "./reply-sender.ts";

/** Operations whose result the caller must get to know. */
const CHANGING: ReadonlySet<FuseOperation> = new Set([
  "create",
  "flush",
  "fsync",
  "mkdir",
  "release",
  "rename",
  "rmdir",
  "setattr",
  "unlink",
]);

/**
 * Time that an interrupted request has to end, in milliseconds. Timers of emacs and Go interrupt requests all the time, and programs
 * do not expect EINTR of stat(2). Ctrl-C ends a program that waits for a store after this time.
 */
const INTERRUPT_GRACE_MS = 1000;

/** Requests of the kernel that wait for their result. Each gets one reply: the result, an error, or EINTR. */
export class RunningRequests {
  readonly #replies: ReplySender;
  readonly #timers: Timers;
  readonly #onFailure: (error: unknown) => void;
  readonly #running = new Set<bigint>();
  /** Those of them that change something, and are completed also if the caller was interrupted. */
  readonly #changing = new Set<bigint>();

  /** @param onFailure called with an error that is none of a file */
  constructor(replies: ReplySender, timers: Timers, onFailure: (error: unknown) => void) {
    this.#replies = replies;
    this.#timers = timers;
    this.#onFailure = onFailure;
  }

  get size(): number {
    return this.#running.size;
  }

  /** @param unique number of the request */
  add(unique: bigint, operation: FuseOperation, reply: Promise<Reply>): void {
    this.#running.add(unique);
    if (CHANGING.has(operation)) this.#changing.add(unique);
    reply.then(
      (value) => {
        this.#changing.delete(unique);
        if (this.#running.delete(unique)) this.#replies.send(unique, value);
        else this.#replies.discard(value);
      },
      (error: unknown) => {
        this.#changing.delete(unique);
        if (this.#running.delete(unique)) this.fail(unique, error);
      },
    );
  }

  /** The kernel interrupts a request, because a signal has come to its caller. */
  interrupt(target: bigint): void {
    if (this.#changing.has(target) || !this.#running.has(target)) return;
    this.#timers.after(INTERRUPT_GRACE_MS, () => {
      if (this.#running.delete(target)) this.fail(target, new FileError("EINTR"));
    });
  }

  /** Replies with the error of a request. */
  fail(unique: bigint, error: unknown): void {
    if (error instanceof FuseProtocolError) {
      if (error.unique !== undefined) this.#replies.fail(error.unique, error.errno);
      return;
    }
    if (!(error instanceof FileError)) this.#onFailure(error);
    this.#replies.fail(unique, (error instanceof FileError ? error : new FileError("EIO")).errno);
  }
}
