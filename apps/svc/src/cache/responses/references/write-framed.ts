import type { PendingResponse } from "../response-store.ts";
import type { OpenFile } from "../response-file.ts";
import type { Slices } from "../slices.ts";

/**
 * Writes a whole response that a reference gives, and commits it. Its slices are shared with those that send them.
 *
 * @param isCurrent whether it may still be stored
 * @throws a system error, StoredDataDamaged, the reason of the signal
 */
export async function writeFramed(
  file: OpenFile,
  pending: PendingResponse,
  slices: Slices,
  signal: AbortSignal,
  isCurrent: () => boolean,
): Promise<void> {
  const { identity, read, size, sums } = file;
  try {
    for (let at = 0; at < size;) {
      signal.throwIfAborted();
      const slice = await slices.take(identity, read, at, size, sums);
      try {
        await pending.write([slice.bytes], at);
      } finally {
        slice.release();
      }
      at += slice.bytes.length;
    }
    if (isCurrent()) await pending.commit(sums);
  } finally {
    await pending.discard();
    await pending.close();
  }
}
