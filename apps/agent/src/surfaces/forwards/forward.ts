import { messageOf, type Clock, type Logger } from "@devplat/base";
import type { ForwardConnection } from "./connection.ts";
import { ForwardError } from "./errors/forward-error.ts";
import { sameConnection, type RemoteEntry } from "./file/remote-entry.ts";
import {
  initialState,
  nextState,
  type ForwardEvent,
  type ForwardState,
  type RetryCause,
} from "./forward-state.ts";
import { ConnectionError, messageLine, type Failure } from "./openssh/failure.ts";
import type { ProofWatch } from "./proof-watch.ts";
import type { FormerSocket } from "./remote-socket.ts";

/** A connection as a forward uses it. */
type UsedConnection = Pick<
  ForwardConnection,
  "proven" | "socket" | "ended" | "isOurs" | "lendBy" | "close" | "discard"
>;

export type OpenConnection = (
  entry: RemoteEntry,
  former: FormerSocket | undefined,
  signal: AbortSignal,
) => Promise<UsedConnection>;

export interface ForwardParts {
  readonly open: OpenConnection;
  readonly proofs: ProofWatch;
  readonly clock: Clock;
  readonly logger: Logger;
  /** From 0 to 1. */
  readonly random: () => number;
  /** Called after the state has changed. */
  readonly changed: () => void;
}

/** Keeps one remote's forward up. */
export class Forward {
  readonly #parts: ForwardParts;
  #entry: RemoteEntry;
  #state: ForwardState;
  /** The attempt or connection that is there, and all before it. */
  #work: Promise<void> = Promise.resolve();
  #stop = new AbortController();
  #timer = new AbortController();
  #former: FormerSocket | undefined;
  /** The connection that is up. */
  #connection: UsedConnection | undefined;

  constructor(parts: ForwardParts, entry: RemoteEntry) {
    this.#parts = parts;
    this.#entry = entry;
    this.#state = initialState(parts.clock.monotonic());
    if (entry.enabled) this.#dispatch({ type: "enable" });
  }

  get entry(): RemoteEntry {
    return this.#entry;
  }

  get state(): ForwardState {
    return this.#state;
  }

  /** Where the remote socket is, without `~`; undefined before the first connection. */
  get socketPath(): string | undefined {
    return this.#former?.path;
  }

  /** Takes up another configuration of the entry. Other settings of lent tokens leave the connection as it is. */
  update(entry: RemoteEntry): void {
    const before = this.#entry;
    const wasEnabled = before.enabled;
    if (entry.remote_socket !== before.remote_socket) this.#former = undefined;
    this.#entry = entry;
    if (sameConnection(before, entry)) {
      void this.#connection?.lendBy(entry);
      // An attempt that waits may come now.
      this.#dispatch({ type: "trigger", cause: "retry" });
    } else if (!entry.enabled) this.#dispatch({ type: "disable" });
    else this.#dispatch(wasEnabled ? { type: "trigger", cause: "edit" } : { type: "enable" });
  }

  /** Another attempt may succeed now. */
  trigger(cause: RetryCause): void {
    this.#dispatch({ type: "trigger", cause });
  }

  /** Ends the connection. Resolves when nothing of it is left. */
  async stop(): Promise<void> {
    this.#dispatch({ type: "disable" });
    await this.#work;
  }

  #dispatch(event: ForwardEvent): void {
    const { clock, random, changed, logger } = this.#parts;
    const before = this.#state;
    this.#state = nextState(before, event, clock.monotonic(), random());
    const { phase, attempt, retryAt, failure } = this.#state;
    if (this.#state === before) return;
    if (phase !== before.phase) {
      const reason = failure === undefined ? {} : { class: failure.class, reason: failure.message };
      logger.info({ host: this.#entry.host, state: phase, ...reason }, "forward changed its state");
    }
    if (phase === "disabled" || attempt !== before.attempt) this.#stop.abort();
    if (attempt !== before.attempt) this.#startAttempt(attempt);
    if (retryAt !== before.retryAt) this.#startTimer(retryAt);
    changed();
  }

  #startTimer(at: number | undefined): void {
    const { clock } = this.#parts;
    this.#timer.abort();
    if (at === undefined) return;
    const timer = new AbortController();
    this.#timer = timer;
    void clock.sleep(Math.max(1, at - clock.monotonic()), timer.signal).then(
      () => {
        this.#dispatch({ type: "tick" });
        // A timer may fire a little early.
        if (this.#state.retryAt === at) this.#startTimer(at);
      },
      () => undefined,
    );
  }

  #startAttempt(attempt: number): void {
    const stop = new AbortController();
    this.#stop = stop;
    // The connection before must be gone: it has the remote socket.
    this.#work = this.#work.then(() => this.#attempt(attempt, stop.signal));
  }

  /** One attempt, and the connection that comes of it. Never rejects. */
  async #attempt(attempt: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const report = (event: ForwardEvent): void => {
      if (this.#state.attempt === attempt) this.#dispatch(event);
    };
    try {
      const entry = this.#entry;
      const connection = await this.#parts.open(entry, this.#former, signal);
      this.#former = connection.socket;
      this.#connection = connection;
      // Changed while the connection was made.
      if (this.#entry !== entry) void connection.lendBy(this.#entry);
      if (!signal.aborted) report({ type: "connected", proven: connection.proven });
      const failure = await this.#endOf(connection, signal);
      this.#connection = undefined;
      if (failure === undefined) return await connection.close();
      report({ type: "failed", failure });
      await connection.discard();
    } catch (error) {
      if (!signal.aborted) report({ type: "failed", failure: failureFrom(error) });
    }
  }

  /** Resolves when the connection has ended or leads elsewhere; undefined: the caller closes it. */
  async #endOf(
    connection: Pick<ForwardConnection, "ended" | "isOurs">,
    signal: AbortSignal,
  ): Promise<Failure | undefined> {
    const { promise, resolve } = Promise.withResolvers<Failure | undefined>();
    const stop = (): void => resolve(undefined);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    const endWatch = this.#parts.proofs.add(
      () => connection.isOurs(),
      () =>
        resolve({ class: "socket-bind", message: "The remote socket was taken away, or leads elsewhere" }),
    );
    try {
      return await Promise.race([connection.ended, promise]);
    } finally {
      endWatch();
      signal.removeEventListener("abort", stop);
    }
  }
}

/** Why an attempt failed. */
function failureFrom(error: unknown): Failure {
  if (error instanceof ConnectionError) return error.failure;
  const message = messageLine(messageOf(error));
  // These need another configuration or another ssh.
  return error instanceof ForwardError
    ? { class: "local", message, waitLong: true }
    : { class: "local", message };
}
