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
/** While the daemon does not respond, one request is tried in this time, in milliseconds. */
const PROBE_INTERVAL_MS = 5000;

interface Waiting {
  resolve(reply: MountReply): void;
  reject(error: FileError): void;
  /** Ends the time limit. */
  cancelTimer(): void;
}

/** Requests to the daemon, each with a time limit. After one has passed, others fail immediately until the daemon responds. */
export class DaemonLink {
  readonly #send: (message: ServerMessage) => void;
  readonly #timers: Timers;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  /** Time of the next try while the daemon does not respond. */
  #nextProbeMs: number | undefined;

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
    const cancelTimer = this.#timers.after(DEADLINE_MS, () => {
      this.#nextProbeMs = this.#timers.now() + PROBE_INTERVAL_MS;
      giveUp(new FileError("ETIMEDOUT"));
    });
    const interrupt = (): void => giveUp(new FileError("EINTR"));
    this.#waiting.set(id, { resolve, reject, cancelTimer });
    signal?.addEventListener("abort", interrupt, { once: true });
    this.#send({ kind: "request", id, request });
    try {
      return (await promise) as MountReplies[K];
    } finally {
      signal?.removeEventListener("abort", interrupt);
    }
  }

  receive(message: Extract<DaemonMessage, { kind: "reply" | "fault" }>): void {
    this.#nextProbeMs = undefined;
    const waiting = this.#end(message.id);
    if (message.kind === "reply") waiting?.resolve(message.reply);
    else waiting?.reject(new StoreFault(message.code));
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
