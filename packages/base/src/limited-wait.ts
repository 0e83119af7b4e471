import { systemClock, type Clock } from "./clock.ts";

/** Ends the wait for work when a signal fires. The work goes on. @throws the reason of the signal, or the error of the work */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await work;
  // Nobody may be there any more to handle its failure.
  work.catch(() => undefined);
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason as Error);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** The value of a promise; undefined if it does not resolve in time. The work goes on. @throws the error of the work in time */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  const timeout = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => timeout.resolve(undefined), ms);
  try {
    return await Promise.race([promise, timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}

export interface PollOptions {
  /** Time after which the last look is taken, in milliseconds. */
  readonly limitMs: number;
  /** Wait between two looks, in milliseconds. */
  readonly intervalMs: number;
  readonly clock?: Pick<Clock, "monotonic" | "sleep">;
}

/**
 * Looks again and again, until what is seen is as wanted or the time is over.
 *
 * @returns the last thing seen: the caller asks whether it is as wanted
 * @throws the error of a look
 */
export async function pollUntil<Seen>(
  look: () => Promise<Seen>,
  isWanted: (seen: Seen) => boolean,
  { limitMs, intervalMs, clock = systemClock }: PollOptions,
): Promise<Seen> {
  const deadline = clock.monotonic() + limitMs;
  for (;;) {
    const isLast = clock.monotonic() >= deadline;
    const seen = await look();
    if (isLast || isWanted(seen)) return seen;
    await clock.sleep(intervalMs);
  }
}
