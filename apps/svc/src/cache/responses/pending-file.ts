import type { FileHandle } from "node:fs/promises";
import { rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { syncFolder } from "@devplat/base";
import type { BlockSums, FileSums } from "./block-sums.ts";
import type { FileTimes } from "./checked-files.ts";
import { fileIdentity, fileReader, readAt, writeAllAt } from "./file-io.ts";
import { encodeTrailer } from "./response-trailer.ts";
import type { PendingResponse } from "./response-store.ts";
import type { Slice, Slices } from "./slices.ts";

/** Bytes of a response that are read together on the way into the mirror: as many as its indexing reads together. */
const READ_BYTES = 1024 * 1024;

export interface PendingFileParts {
  readonly handle: FileHandle;
  /** Path while it is written. */
  readonly pendingPath: string;
  /** Path after the commit. */
  readonly path: string;
  /** Says which request the response answers. */
  readonly identity: Buffer;
  readonly slices: Slices;
  /** Whether the trailer gets a file of its own, so that the response file is the response and nothing else. Default false. */
  readonly separateTrailer?: boolean;
  /** Called before the file gets its name. */
  readonly onComplete: (identity: string, modifiedMs: number) => void;
  /** Called with the number of bytes on the disk. */
  readonly onCommitted: (bytes: number, identity: string, times: FileTimes) => void;
}

/** A response file under a temporary name, until it is synced and renamed. */
export class PendingFile implements PendingResponse {
  readonly #parts: PendingFileParts;
  #committed = false;

  constructor(parts: PendingFileParts) {
    this.#parts = parts;
  }

  async write(chunks: readonly Buffer[], position: number): Promise<void> {
    await writeAllAt(this.#parts.handle.fd, chunks, position);
  }

  slice(offset: number, end: number, sums: BlockSums): Slice | Promise<Slice> {
    const { handle, pendingPath, slices } = this.#parts;
    return slices.take(pendingPath, fileReader(handle.fd), offset, end, sums);
  }

  async *chunks(size: number): AsyncGenerator<Buffer, void, undefined> {
    const buffer = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, size));
    for (let position = 0; position < size;) {
      const length = Math.min(buffer.length, size - position);
      const count = await readAt(this.#parts.handle.fd, buffer, length, position);
      if (count === 0) return;
      position += count;
      yield buffer.subarray(0, count);
    }
  }

  async commit(sums: FileSums): Promise<void> {
    const { handle, pendingPath, path, identity, separateTrailer, onComplete, onCommitted } = this.#parts;
    const trailer = encodeTrailer(sums, identity);
    if (separateTrailer !== true) await writeAllAt(handle.fd, [trailer], sums.size);
    await handle.sync();
    const facts = await handle.stat();
    if (separateTrailer === true) {
      const { writeSeparateTrailer } = await import("./separate-trailer.ts");
      await writeSeparateTrailer(path, facts.ino, trailer);
    }
    const named = fileIdentity(path, facts);
    onComplete(named, facts.mtimeMs);
    await rename(pendingPath, path);
    this.#committed = true;
    await syncFolder(dirname(path));
    // The new name has changed a time of the file.
    onCommitted(facts.size, named, await handle.stat());
  }

  async discard(): Promise<void> {
    if (!this.#committed) await unlink(this.#parts.pendingPath).catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#parts.slices.forget(this.#parts.pendingPath);
    // The file is durable or discarded already, so a failure changes nothing.
    await this.#parts.handle.close().catch(() => undefined);
  }
}
