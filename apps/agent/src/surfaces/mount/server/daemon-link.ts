import type {
  DaemonMessage,
  MountReplies,
  MountReply,
  MountRequest,
  ServerMessage,
} from "../channel/messages.ts";
import { FileError, StoreFault } from "../tree/file-error.ts";
import type { Timers } from "../timers.ts";

/** Time limit of a request to the daemon, in milliseconds. */
const DEADLINE_MS = 30_000;
/** While the store does not respond, one request is tried in this time, in milliseconds. */
const PROBE_INTERVAL_MS = 5000;
/** The daemon limits its requests to the store to the same time, so its fault can arrive just before the time limit here. */
const SAME_MOMENT_MS = 1000;

interface Waiting {
  readonly sentMs: number;
  resolve(reply: MountReply): void;
  reject(error: FileError): void;
  /** Ends the time limit. */
  cancelTimer(): void;
}

/**
 * Requests to the daemon, each with a time limit. After one has passed without a response to any request, others fail
 * immediately until the daemon and its store respond.
 */
export class DaemonLink {
  readonly #send: (message: ServerMessage) => void;
  readonly #timers: Timers;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  /** Time of the next try while the store does not respond. */
  #nextProbeMs: number | undefined;
  #lastResponseMs = Number.NEGATIVE_INFINITY;

  constructor(send: (message: ServerMessage) => void, timers: Timers) {
    this.#send = send;
    this.#timers = timers;
  }

  /** @throws StoreFault; FileError ETIMEDOUT; FileError EINTR when the signal fires */
  async request<K extends MountRequest["kind"]>(
    request: Extract<MountRequest, { kind: K }>,
    signal?: AbortSignal,
  ): Promise<MountReplies[K]> {
    if (signal?.aborted === true) throw new FileError("EINTR");
    this.#checkResponds();
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<MountReply>();
    const giveUp = (error: FileError): void => {
      if (!this.#waiting.has(id)) return;
      this.#end(id);
      this.#send({ kind: "cancel", id });
      reject(error);
    };
    const sentMs = this.#timers.now();
    const cancelTimer = this.#timers.after(DEADLINE_MS, () => {
      this.#notePassed(sentMs);
      giveUp(new FileError("ETIMEDOUT"));
    });
    const interrupt = (): void => giveUp(new FileError("EINTR"));
    this.#waiting.set(id, { sentMs, resolve, reject, cancelTimer });
    signal?.addEventListener("abort", interrupt, { once: true });
    this.#send({ kind: "request", id, request });
    try {
      return (await promise) as MountReplies[K];
    } finally {
      signal?.removeEventListener("abort", interrupt);
    }
  }

  receive(message: Extract<DaemonMessage, { kind: "reply" | "fault" }>): void {
    const waiting = this.#end(message.id);
    // The fault of a request that was cancelled shows nothing about the store.
    if (waiting === undefined) return;
    const ageMs = this.#timers.now() - waiting.sentMs;
    if (message.kind === "fault" && message.code === "unavailable" && ageMs >= DEADLINE_MS - SAME_MOMENT_MS) {
      this.#notePassed(waiting.sentMs);
      waiting.reject(new FileError("ETIMEDOUT"));
      return;
    }
    this.#nextProbeMs = undefined;
    this.#lastResponseMs = this.#timers.now();
    if (message.kind === "reply") waiting.resolve(message.reply);
    else waiting.reject(new StoreFault(message.code));
  }

  /** The time limit of a request has passed. If others were answered since then, only its own part of the store hangs. */
  #notePassed(sentMs: number): void {
    if (this.#lastResponseMs < sentMs) this.#nextProbeMs = this.#timers.now() + PROBE_INTERVAL_MS;
  }

  #end(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    waiting?.cancelTimer();
    return waiting;
  }

  #checkResponds(): void {
    if (this.#nextProbeMs === undefined) return;
    const now = this.#timers.now();
    if (now < this.#nextProbeMs) throw new FileError("ETIMEDOUT");
    this.#nextProbeMs = now + PROBE_INTERVAL_MS;
  }
}
