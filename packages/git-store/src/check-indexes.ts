import { createHash } from "node:crypto";
import { GitStoreError } from "./errors.ts";
import type { ObjectDatabase } from "./object-database.ts";
import { Pause } from "./slices.ts";

/** Bytes hashed between two checks of the clock: 2 to 8 ms. */
const HASH_BYTES = 4 * 1024 * 1024;

/**
 * Compares the `.idx` of each open pack with its checksum. It reads the bytes in memory, because those are used.
 * Yields to the event loop every few milliseconds.
 *
 * @throws {GitStoreError} `wrong_trailer` with the file's path
 */
export async function checkIndexes(objects: ObjectDatabase, signal?: AbortSignal): Promise<void> {
  const pause = new Pause(signal);
  for (const { index, path } of objects.packs) {
    const { content } = index;
    const hash = createHash(objects.format);
    for (let at = 0; at < content.length; at += HASH_BYTES) {
      hash.update(content.subarray(at, at + HASH_BYTES));
      if (pause.isDue) await pause.take();
    }
    if (hash.digest().equals(index.checksum)) continue;
    const file = path.replace(/\.pack$/u, ".idx");
    throw new GitStoreError("wrong_trailer", `read ${file}: it does not match its checksum`, { path: file });
  }
}
