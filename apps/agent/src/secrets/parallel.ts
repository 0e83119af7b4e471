import { Semaphore } from "@devplat/base/semaphore";

/** Concurrent requests to the store: enough to hide a round trip, and few enough for a shared server. */
export const MAX_PARALLEL = 8;

/**
 * Runs `action` for all items, with at most {@link MAX_PARALLEL} concurrent ones. After an error no other one begins.
 *
 * @throws the first error, when all that have begun have ended
 */
export async function inParallel<T>(items: readonly T[], action: (item: T) => Promise<void>): Promise<void> {
  const turns = new Semaphore(MAX_PARALLEL);
  const errors: unknown[] = [];
  const run = async (item: T): Promise<void> => {
    const release = await turns.acquire();
    try {
      if (errors.length === 0) await action(item);
    } catch (error) {
      errors.push(error);
    } finally {
      release();
    }
  };
  await Promise.all(items.map(run));
  if (errors.length > 0) throw errors[0];
}
