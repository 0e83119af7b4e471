import { systemCode } from "@devplat/base";

/** Changes that one look at a store can meet; each takes another process a while to prepare. */
const MAX_TRIES = 5;

/**
 * Does work that opens files of a store, again if one of them went while it was being opened: another process merged a pack into
 * one that is there by now, or removed the store.
 */
export async function despiteReplacement<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (systemCode(error) !== "ENOENT" || tries === MAX_TRIES) throw error;
    }
  }
}
