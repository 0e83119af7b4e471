import { join } from "node:path";
import { readSealed, writeSealed } from "@devplat/base/sealed-file";
import { Serializer } from "@devplat/base/serializer";

/** File below `cache.storage_path`. No owner starts with a dot. */
const FILE = ".epochs.json";

/**
 * Epochs of the data in the cache folder, in one file of that folder. Data whose epoch is not in it has epoch 0. So a file
 * that is lost or damaged makes all purged repositories empty, and never brings purged data back.
 */
export class LocalEpochs {
  readonly #path: string;
  readonly #epochs: Map<string, number>;
  readonly #writes = new Serializer();

  private constructor(path: string, epochs: Map<string, number>) {
    this.#path = path;
    this.#epochs = epochs;
  }

  /** @throws a system error */
  static async open(storagePath: string): Promise<LocalEpochs> {
    const path = join(storagePath, FILE);
    return new LocalEpochs(path, epochsOf(await readSealed(path)));
  }

  get(key: string): number {
    return this.#epochs.get(key) ?? 0;
  }

  /** By key. */
  all(): ReadonlyMap<string, number> {
    return this.#epochs;
  }

  /** Says that the data of these repositories has these epochs now. Durable when it resolves. @throws a system error */
  async put(epochs: ReadonlyMap<string, number>): Promise<void> {
    await this.#writes.run(async () => {
      for (const [key, epoch] of epochs) this.#epochs.set(key, epoch);
      await writeSealed(this.#path, { epochs: Object.fromEntries(this.#epochs) });
    });
  }
}

function epochsOf(content: unknown): Map<string, number> {
  const { epochs } = Object(content) as { readonly epochs?: unknown };
  if (content === "damaged" || typeof epochs !== "object" || epochs === null) return new Map();
  return new Map(
    Object.entries(epochs).filter((entry): entry is [string, number] => Number.isSafeInteger(entry[1])),
  );
}
