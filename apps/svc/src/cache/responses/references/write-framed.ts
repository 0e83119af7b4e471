import { StoredDataDamaged } from "../block-sums.ts";
import type { PendingResponse } from "../response-store.ts";
import type { OpenFile } from "../response-file.ts";
import { SLICE_BYTES } from "../slices.ts";

/**
 * Writes a whole response that a reference gives, and commits it. It uses memory of its own: shared slices would be kept
 * until the slower one of two has read them, and cost twice as much CPU.
 *
 * @param isCurrent whether it may still be stored
 * @throws a system error, StoredDataDamaged, the reason of the signal
 */
export async function writeFramed(
  { read, size, sums }: OpenFile,
  pending: PendingResponse,
  signal: AbortSignal,
  isCurrent: () => boolean,
): Promise<void> {
  const buffer = Buffer.allocUnsafeSlow(Math.min(size, SLICE_BYTES));
  try {
    for (let at = 0; at < size; at += buffer.length) {
      signal.throwIfAborted();
      const bytes = buffer.subarray(0, Math.min(buffer.length, size - at));
      if ((await read(bytes, at)) < bytes.length || !sums.matches(bytes, at)) {
        throw new StoredDataDamaged("the pack of a stored response does not match its checksums");
      }
      await pending.write([bytes], at);
    }
    if (isCurrent()) await pending.commit(sums);
  } finally {
    await pending.discard();
    await pending.close();
  }
}
