import { indexPack, type IndexedPack } from "../index-pack/index-pack.ts";
import { Pack } from "../pack/pack.ts";
import type { Bitset } from "../reachability/bitset.ts";
import type { PackSource } from "../serve/pack-writer.ts";
import { finishInSlices } from "../slices.ts";
import { checkSame } from "./check-same.ts";
import { deepDeltas } from "./deep-deltas.ts";
import { packBytes } from "./pack-bytes.ts";

/** Selected objects that are written to a new pack. */
export interface ObjectCopy {
  readonly source: PackSource;
  readonly send: Bitset;
  /** Number of objects in `send`. */
  readonly count: number;
  /** Folder of the new pack. */
  readonly folder: string;
  readonly signal: AbortSignal | undefined;
}

/** The bytes of a pack with the selected objects. Entries and deltas are copied in compressed form. */
export async function copiedBytes({
  source,
  send,
  signal,
}: Pick<ObjectCopy, "source" | "send" | "signal">): Promise<AsyncIterable<Uint8Array>> {
  const undeltified = source.numbers.emptySet();
  await finishInSlices(deepDeltas(source, send, undeltified), signal);
  return packBytes(source, { send, clientHas: undefined, ofsDelta: true, undeltified }, signal);
}

/**
 * Indexes the bytes of a pack with the selected objects. Every object is hashed.
 *
 * @param use work with the new pack, which is closed after it
 * @throws {GitStoreError} `corrupt_object` if the pack has other objects
 */
export async function indexCopy(
  bytes: AsyncIterable<Uint8Array>,
  { source, send, count, folder, signal }: ObjectCopy,
  use: (pack: Pack) => Promise<void>,
): Promise<IndexedPack> {
  const { format } = source;
  const options = { folder, format, threads: 0 };
  const indexed = await indexPack(bytes, signal === undefined ? options : { ...options, signal });
  const pack = Pack.open(indexed.packPath, format);
  try {
    checkSame(source, send, count, pack);
    await use(pack);
  } finally {
    pack.close();
  }
  return indexed;
}
