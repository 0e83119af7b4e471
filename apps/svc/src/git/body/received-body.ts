import type { IncomingMessage } from "node:http";
import { IdleTimer } from "../../http/request/idle-timer.ts";
import { GitError } from "../../upstream/errors.ts";

/**
 * The bytes of a client's body, read from its connection on demand. The rest waits in the socket.
 * Cheaper than the iterator of a stream, as every request needs one.
 */
export class ReceivedBody {
  readonly #request: IncomingMessage;
  readonly #idle: IdleTimer;
  readonly #deadline: number;
  #error: GitError | undefined;
  #wake: () => void = () => undefined;
  /** Bytes so far. */
  size = 0;

  /**
   * @param limits.idleMs milliseconds that a reader waits for the next byte
   * @param limits.totalMs milliseconds for the whole body: one that drips for ever ends too
   */
  constructor(request: IncomingMessage, limits: { readonly idleMs: number; readonly totalMs: number }) {
    this.#request = request;
    this.#deadline = performance.now() + limits.totalMs;
    this.#idle = new IdleTimer(limits.idleMs, () => this.#fail(tooSlow()));
    this.#idle.pause();
    request.on("readable", this.#onChange).on("end", this.#onChange).on("close", this.#onChange);
    request.on("error", this.#onChange);
  }

  /**
   * The next bytes; undefined after the last.
   *
   * @throws GitError `body_too_slow`, `client_gone`
   */
  async next(): Promise<Buffer | undefined> {
    for (;;) {
      if (this.#error !== undefined) throw this.#error;
      if (performance.now() > this.#deadline) throw tooSlow();
      const bytes = this.#request.read() as Buffer | null;
      if (bytes !== null) {
        this.size += bytes.length;
        return bytes;
      }
      if (this.#request.readableEnded) return undefined;
      if (this.#request.destroyed && !this.#request.complete) throw clientGone();
      this.#idle.resume();
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#idle.pause();
    }
  }

  /** Stops reading. The request stays as it is. */
  leave(): void {
    this.#idle.stop();
    this.#request.off("readable", this.#onChange).off("end", this.#onChange).off("close", this.#onChange);
  }

  readonly #onChange = (): void => this.#wake();

  #fail(error: GitError): void {
    this.#error = error;
    this.#wake();
  }
}

function tooSlow(): GitError {
  return new GitError("body_too_slow", 408, "the request's body took too long");
}

function clientGone(): GitError {
  return new GitError("client_gone", 499, "the client left");
}
