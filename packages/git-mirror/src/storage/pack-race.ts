import { systemCode } from "@devplat/base";

/** Changes that one look at a store can meet; each takes another process a while to prepare. */
const MAX_TRIES = 5;

/** What failed read one state of a store, and another process has put the next one in its place meanwhile. */
export class StoreChanged extends Error {
  constructor(reason: unknown) {
    super("another process changed the store while it was read", { cause: reason });
    this.name = "StoreChanged";
  }
}

/**
 * Does work that reads files of a store, again if another process changed the store meanwhile: a file went while it was being
 * opened, or the work says {@link StoreChanged}.
 *
 * @throws what the work throws; after the last try the reason of a {@link StoreChanged}
 */
export async function despiteReplacement<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      const reason: unknown = error instanceof StoreChanged ? error.cause : error;
      const isRace = reason !== error || systemCode(error) === "ENOENT";
      if (!isRace || tries === MAX_TRIES) throw reason;
    }
  }
}
