import { open, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { Semaphore } from "@devplat/base/semaphore";
import type { PackFileKind, StagedPack, StagingFolder } from "@devplat/git-mirror";
import type { ByteRange } from "@devplat/object-store";
import type { RepositoryId } from "../../../access/repository-id.ts";
import type { ManifestPack, StoredObject } from "../manifest/manifest.ts";
import { EarlyFlushes } from "./early-flushes.ts";

/** Transfers for one repository at the same time. Each takes two slices of memory. */
const PARALLEL = 6;
/** Bytes of one transfer. A large pack is read by several, because one connection does not use a fast network. */
const PIECE_BYTES = 32 * 1024 * 1024;
/** Indexes first: a pack is useless without them, and they are small. */
const ORDER: readonly PackFileKind[] = ["idx", "rev", "bitmap", "graph", "pack"];

/** Reads objects whose bytes were compared with their checksums. */
export interface ObjectSource {
  read(
    id: RepositoryId,
    object: StoredObject,
    options: { readonly range: ByteRange; readonly signal: AbortSignal },
  ): AsyncIterable<Uint8Array>;
}

export interface DownloadParts {
  readonly source: ObjectSource;
  readonly id: RepositoryId;
  readonly folder: StagingFolder;
  readonly signal: AbortSignal;
  /** Called with the number of bytes of each piece. */
  readonly onBytes: (count: number) => void;
}

/** Part of an object, and the file that gets it. */
interface Piece {
  readonly object: StoredObject;
  readonly path: string;
  readonly range: ByteRange;
}

/**
 * Reads all files of packs into a staging folder, several at the same time. After a failure nothing of them may be used.
 *
 * @throws ObjectStoreError `damaged` if bytes are wrong, `missing`; a system error
 */
export async function downloadPacks(
  packs: readonly ManifestPack[],
  { source, id, folder, signal, onBytes }: DownloadParts,
): Promise<StagedPack[]> {
  const failed = new AbortController();
  const ended = AbortSignal.any([signal, failed.signal]);
  const turns = new Semaphore(PARALLEL);
  const flushes = new EarlyFlushes();
  const pieces = ORDER.flatMap((kind) => packs.flatMap((pack) => piecesOf(pack, kind, folder)));
  const work = pieces.map(async ({ object, path, range }) => {
    try {
      const release = await turns.acquire(ended);
      try {
        await writePiece(path, range, source.read(id, object, { range, signal: ended }), {
          onBytes,
          flushes,
        });
      } finally {
        release();
      }
    } catch (error) {
      failed.abort(error);
    }
  });
  // All have ended before the caller removes the folder.
  await Promise.all(work);
  ended.throwIfAborted();
  return packs.map(({ pack, files }) => ({
    name: pack,
    kinds: ORDER.filter((kind) => files[kind] !== undefined),
  }));
}

function piecesOf({ pack, files }: ManifestPack, kind: PackFileKind, folder: StagingFolder): Piece[] {
  const object = files[kind];
  if (object === undefined) return [];
  const path = join(folder.path, `${pack}.${kind}`);
  const count = Math.max(1, Math.ceil(object.length / PIECE_BYTES));
  return Array.from({ length: count }, (_, at) => {
    const first = at * PIECE_BYTES;
    return { object, path, range: { first, length: Math.min(PIECE_BYTES, object.length - first) } };
  });
}

async function writePiece(
  path: string,
  { first }: ByteRange,
  chunks: AsyncIterable<Uint8Array>,
  { onBytes, flushes }: { readonly onBytes: (count: number) => void; readonly flushes: EarlyFlushes },
): Promise<void> {
  // Without truncation: other pieces of the file are written at the same time.
  const file = await open(path, "a").then(async (made) => {
    await made.close();
    return open(path, "r+");
  });
  try {
    let position = first;
    for await (const bytes of chunks) {
      await writeAll(file, bytes, position);
      position += bytes.length;
      onBytes(bytes.length);
      flushes.wrote(file, bytes.length);
    }
  } finally {
    try {
      await flushes.settled(file);
    } finally {
      await file.close();
    }
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}
