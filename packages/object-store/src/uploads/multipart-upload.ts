import { open, type FileHandle } from "node:fs/promises";
import { CHUNK_BYTES } from "./chunked-body.ts";
import { ObjectStoreError } from "../errors.ts";
import type { ObjectSource, WriteCondition, Written } from "../object-store.ts";

/** Bytes of one part. S3 takes 5 MiB to 5 GiB, and a maximum of 10,000 parts. */
export const PART_BYTES = 8 << 20;
const MAX_PARTS = 10_000;

export interface UploadPart {
  /** From 1. */
  readonly number: number;
  /** Position of its first byte. */
  readonly position: number;
  readonly length: number;
}

export interface SentPart {
  /** From 1. */
  readonly number: number;
  readonly etag: string;
}

/** The four requests of a multipart upload. */
export interface MultipartRequests {
  create(): Promise<string>;
  /** Reads and sends a part. @returns its ETag */
  sendPart(uploadId: string, part: UploadPart, signal: AbortSignal): Promise<string>;
  /** Rejects with `outcomeUnknown` if the object may be there. */
  complete(
    uploadId: string,
    parts: readonly SentPart[],
    condition: WriteCondition | undefined,
  ): Promise<Written>;
  abort(uploadId: string): Promise<void>;
}

export interface MultipartOptions {
  readonly condition: WriteCondition | undefined;
  /** Number of parts in transfer. */
  readonly parallel: number;
  readonly partBytes: number;
  readonly signal: AbortSignal | undefined;
}

/** A file whose content is about to be written to the store. The caller must close it. */
export class FileSource implements ObjectSource {
  readonly length: number;
  readonly #file: FileHandle;
  readonly #changedAt: bigint;
  readonly #path: string;

  private constructor(path: string, file: FileHandle, length: number, changedAt: bigint) {
    this.#path = path;
    this.#file = file;
    this.length = length;
    this.#changedAt = changedAt;
  }

  static async open(path: string): Promise<FileSource> {
    const file = await open(path, "r");
    try {
      const { size, mtimeNs } = await file.stat({ bigint: true });
      return new FileSource(path, file, Number(size), mtimeNs);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Fills a buffer from a position. @throws ObjectStoreError `damaged`: the file has become shorter */
  async read(buffer: Uint8Array, position: number): Promise<void> {
    for (let done = 0; done < buffer.length;) {
      const { bytesRead } = await this.#file.read(buffer, done, buffer.length - done, position + done);
      if (bytesRead === 0) throw this.#changed();
      done += bytesRead;
    }
  }

  /** @throws ObjectStoreError `damaged`: the file has changed since it was opened */
  async checkUnchanged(): Promise<void> {
    const { size, mtimeNs } = await this.#file.stat({ bigint: true });
    if (Number(size) !== this.length || mtimeNs !== this.#changedAt) throw this.#changed();
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  #changed(): ObjectStoreError {
    // Another try would read the same file.
    return new ObjectStoreError(
      "damaged",
      `Cannot upload ${this.#path}: the file changed during the upload`,
      {
        remedy: "final",
      },
    );
  }
}

/** Uploads a file in parts. The condition is that of the completion: S3 ignores one at the creation. */
export async function uploadInParts(
  source: ObjectSource,
  requests: MultipartRequests,
  options: MultipartOptions,
): Promise<Written> {
  const uploadId = await requests.create();
  let completing = false;
  try {
    const parts = await sendParts(source, uploadId, requests, options);
    await source.checkUnchanged?.();
    options.signal?.throwIfAborted();
    completing = true;
    return await requests.complete(uploadId, parts, options.condition);
  } catch (error) {
    // A completion whose response was lost may still be at work. Its parts are left to the sweeper.
    const isOpen = !completing || (error instanceof ObjectStoreError && !error.outcomeUnknown);
    if (isOpen) await requests.abort(uploadId).catch(() => undefined);
    throw error;
  }
}

async function sendParts(
  source: ObjectSource,
  uploadId: string,
  requests: MultipartRequests,
  options: MultipartOptions,
): Promise<SentPart[]> {
  const size = partSize(source.length, options.partBytes);
  const count = Math.ceil(source.length / size);
  const parts: SentPart[] = [];
  const failed = new AbortController();
  const signal =
    options.signal === undefined ? failed.signal : AbortSignal.any([failed.signal, options.signal]);
  let taken = 0;
  const work = async (): Promise<void> => {
    while (taken < count) {
      signal.throwIfAborted();
      const index = taken++;
      const position = index * size;
      const length = Math.min(size, source.length - position);
      const etag = await requests.sendPart(uploadId, { number: index + 1, position, length }, signal);
      parts.push({ number: index + 1, etag });
    }
  };
  const workers = Array.from({ length: Math.min(options.parallel, count) }, () =>
    work().catch((error: unknown) => {
      failed.abort(error);
      throw error;
    }),
  );
  // All have ended before the upload is aborted, so that no part comes after that.
  const ended = await Promise.allSettled(workers);
  if (failed.signal.aborted) throw failed.signal.reason;
  const failure = ended.find((each) => each.status === "rejected");
  if (failure !== undefined) throw failure.reason;
  return parts.toSorted((one, other) => one.number - other.number);
}

/** Bytes of all parts but the last: whole chunks, and few enough parts. */
export function partSize(length: number, partBytes: number): number {
  const least = Math.max(partBytes, length / MAX_PARTS);
  return Math.ceil(least / CHUNK_BYTES) * CHUNK_BYTES;
}
