/** Concurrent requests to Vault for one action. */
const CONCURRENT_REQUESTS = 16;

/** Items in groups of {@link CONCURRENT_REQUESTS}, in their order. */
export async function* batches<T>(items: Iterable<T> | AsyncIterable<T>): AsyncGenerator<readonly T[]> {
  let some: T[] = [];
  for await (const item of items) {
    some.push(item);
    if (some.length < CONCURRENT_REQUESTS) continue;
    yield some;
    some = [];
  }
  if (some.length > 0) yield some;
}

/**
 * Runs an action for all items, with {@link CONCURRENT_REQUESTS} concurrent ones. After an error no other batch begins.
 *
 * @throws the first error, when all actions that have begun have ended
 */
export async function inBatches<T>(
  items: Iterable<T> | AsyncIterable<T>,
  action: (item: T) => Promise<void>,
): Promise<void> {
  for await (const some of batches(items)) {
    const results = await Promise.allSettled(some.map(action));
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }
}
