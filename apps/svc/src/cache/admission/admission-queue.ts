import { within, type Clock } from "@devplat/base";
import type { QueueName, QueueResult } from "../../telemetry/queue-metrics.ts";
import type { ClientWait } from "./client-wait.ts";
import { FairQueue, type FairQueueOptions, type Place, type QueuedWork, type Waiting } from "./fair-queue.ts";
import type { ToldWaiters } from "./told-waiters.ts";

/** Rules of a wait (spec/svc-scale.md section 5). Times are in milliseconds. */
export interface QueueRules {
  /** `cache.queue_silent_seconds`: in this time a client that waits gets no byte. */
  readonly silentMs: number;
  /** `cache.queue_seconds`: a client whose place cannot be had in this time is refused. */
  readonly queueMs: number;
}

/** Receiver of the figures of a queue. */
export interface QueueObserver {
  /** A work left the queue. @param seconds that it waited */
  queued(queue: QueueName, result: QueueResult, seconds: number): void;
}

export interface AdmissionQueueParts {
  readonly name: QueueName;
  readonly places: FairQueueOptions;
  readonly told: ToldWaiters;
  /** Read for each wait, because a reload may change them. */
  readonly rules: () => QueueRules;
  readonly observer: QueueObserver;
  readonly clock: Clock;
}

/**
 * A queue for one resource. First its waits are silent. Then a client is either refused before its first byte, or told on
 * side-band 2 that it waits, and served, however long that takes.
 */
export class AdmissionQueue {
  readonly #parts: AdmissionQueueParts;
  readonly #queue: FairQueue;

  constructor(parts: AdmissionQueueParts) {
    this.#parts = parts;
    this.#queue = new FairQueue(parts.places, parts.clock);
  }

  get name(): QueueName {
    return this.#parts.name;
  }

  /** Works that have a place. */
  get running(): number {
    return this.#queue.running;
  }

  /** Works that wait for a place. */
  get waiting(): number {
    return this.#queue.waiting;
  }

  /**
   * Waits for a place for work that no client waits for, or that the caller limits itself.
   *
   * @param waitMs maximum milliseconds to wait; 0 or less: take a place only if one is free now
   * @returns undefined if no place was free in time, or the signal fired
   */
  async take(work: QueuedWork, signal: AbortSignal, waitMs: number): Promise<Place | undefined> {
    if (signal.aborted) return undefined;
    const place = this.#queue.tryTake(work);
    if (place !== undefined || waitMs <= 0) return place;
    return await this.#during(work, signal, async (waiting, gone) => {
      return await within(Promise.race([waiting.admitted, gone]), waitMs);
    });
  }

  /**
   * Waits for a place for a client's work, by the rules.
   *
   * @param wait of the client
   * @param beginning first bytes of the response, if the client may be told; default: those of the wait
   * @returns `refused` before the client got a byte; undefined if the signal fired
   */
  async wait(
    work: QueuedWork,
    wait: ClientWait,
    signal: AbortSignal,
    beginning: Buffer | undefined = wait.beginning,
  ): Promise<Place | "refused" | undefined> {
    if (signal.aborted) return undefined;
    const place = this.#queue.tryTake(work);
    if (place !== undefined) return place;
    return await this.#during(work, signal, async (waiting, gone) => {
      const { silentMs, queueMs } = this.#parts.rules();
      const admitted = Promise.race([waiting.admitted, gone]);
      if (wait.isServed) return await admitted;
      const soon = await this.#until(admitted, wait.since + Math.min(silentMs, queueMs));
      if (soon !== undefined || signal.aborted) return soon;
      if (wait.isServed) return await admitted;
      // A timer may fire a moment early, so the times are compared, and not the clock.
      if (queueMs <= silentMs || this.#isHopeless(waiting, wait, queueMs)) return "refused";
      if (beginning === undefined) {
        return (
          (await this.#until(admitted, wait.since + queueMs)) ?? (signal.aborted ? undefined : "refused")
        );
      }
      const end = this.#parts.told.begin();
      if (end === undefined) return "refused";
      try {
        wait.tell({ beginning, ahead: () => waiting.ahead });
        return await admitted;
      } finally {
        end();
      }
    });
  }

  /** Whether the place cannot be had in time at the present speed. Without a speed it is not known. */
  #isHopeless({ expectedMs }: Waiting, { since }: ClientWait, queueMs: number): boolean {
    const waitedMs = this.#parts.clock.monotonic() - since;
    return waitedMs + (expectedMs ?? 0) >= queueMs;
  }

  async #until(admitted: Promise<Place | undefined>, end: number): Promise<Place | undefined> {
    const ms = end - this.#parts.clock.monotonic();
    return await within(admitted, Math.max(0, ms));
  }

  /** Runs a wait, and counts how it ended. */
  async #during<Result extends Place | "refused" | undefined>(
    work: QueuedWork,
    signal: AbortSignal,
    run: (waiting: Waiting, gone: Promise<undefined>) => Promise<Result>,
  ): Promise<Result> {
    const { observer, clock, name } = this.#parts;
    const startedAt = clock.monotonic();
    const gone = Promise.withResolvers<undefined>();
    const leave = (): void => gone.resolve(undefined);
    signal.addEventListener("abort", leave, { once: true });
    const waiting = this.#queue.enter(work);
    let result: Result | undefined;
    try {
      result = await run(waiting, gone.promise);
      return result;
    } finally {
      signal.removeEventListener("abort", leave);
      const isPlace = typeof result === "object";
      if (!isPlace) waiting.leave();
      const outcome = isPlace ? "served" : signal.aborted ? "left" : "refused";
      observer.queued(name, outcome, (clock.monotonic() - startedAt) / 1000);
    }
  }
}
