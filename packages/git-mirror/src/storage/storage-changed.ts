import { systemCode } from "@devplat/base";

/** Maximum number of changes that one read can meet. Each takes the other process a while to prepare. */
const MAX_TRIES = 5;

/** A read failed because another process replaced the stored repository during it. */
export class StorageChanged extends Error {
  constructor(reason: unknown) {
    super("another process changed the stored repository while it was read", { cause: reason });
    this.name = "StorageChanged";
  }
}

/**
 * Repeats a read while another process changes the repository: a file disappeared before it was opened, or the read
 * throws {@link StorageChanged}.
 *
 * @throws the error of the read; after the last try the reason of a {@link StorageChanged}
 */
export async function retryOnChange<T>(read: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await read();
    } catch (error) {
      const reason: unknown = error instanceof StorageChanged ? error.cause : error;
      const isRace = reason !== error || systemCode(error) === "ENOENT";
      if (!isRace || tries === MAX_TRIES) throw reason;
    }
  }
}
