import { AppError } from "./errors.ts";
import { systemClock, type Clock } from "./clock.ts";

/** Waits between tries. */
export interface BackoffOptions {
  /** Wait before the second try, in milliseconds. Default 200. */
  readonly firstMs?: number;
  /** Maximum wait in milliseconds. Default 30 000. */
  readonly maxMs?: number;
  /** Factor by which each wait is longer than the one before. Default 2. */
  readonly factor?: number;
  /** Random share of the wait, in both directions. Default 0.2 (±20 %). */
  readonly jitter?: number;
}

/** Wait in milliseconds before try number `attempt + 1`. `attempt` counts the failures so far, from 1. */
export function backoffMs(attempt: number, options: BackoffOptions = {}): number {
  const { firstMs = 200, maxMs = 30_000, factor = 2, jitter = 0.2 } = options;
  const base = Math.min(maxMs, firstMs * factor ** (attempt - 1));
  return Math.round(Math.min(maxMs, base * (1 + jitter * (2 * Math.random() - 1))));
}

export interface RetryOptions extends BackoffOptions {
  /** Maximum number of tries, including the first one. Default 4. */
  readonly attempts?: number;
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
  /** Whether to try again after an error. Default: after an {@link AppError} whose remedy is `retry`. */
  readonly retryable?: (error: unknown) => boolean;
}

/** Runs `action` until it succeeds, fails with an error that is not retryable, or the tries are used up. */
export async function retry<T>(
  action: (attempt: number) => Promise<T>,
  options: RetryOptions = {},
): Promise<T> {
  const { attempts = 4, signal, clock = systemClock, retryable = isRetryable } = options;
  for (let attempt = 1; ; attempt++) {
    try {
      return await action(attempt);
    } catch (error) {
      if (attempt >= attempts || signal?.aborted === true || !retryable(error)) throw error;
      await clock.sleep(backoffMs(attempt, options), signal);
    }
  }
}

function isRetryable(error: unknown): boolean {
  return error instanceof AppError && error.remedy === "retry";
}
