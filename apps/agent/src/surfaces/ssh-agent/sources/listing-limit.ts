import type { Clock } from "@devplat/base";

/**
 * Longest wait of a listing for the store, in milliseconds. A client that asks for keys has a person in front of it. The SSH
 * agent itself gives up after 2 s.
 */
export const LISTING_LIMIT_MS = 1500;

/**
 * Waits for a refresh, but not longer than a listing may take. The refresh goes on after that.
 * @returns whether it has ended. @throws the reason of the signal
 */
export async function endsInTime(
  refresh: Promise<void>,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  const timer = new AbortController();
  const limit = AbortSignal.any([signal, timer.signal]);
  const over = clock.sleep(LISTING_LIMIT_MS, limit).then(
    () => false,
    () => false,
  );
  try {
    const ended = await Promise.race([refresh.then(() => true), over]);
    signal.throwIfAborted();
    return ended;
  } finally {
    timer.abort();
  }
}
