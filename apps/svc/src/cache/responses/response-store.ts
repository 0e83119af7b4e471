import type { ObjectFormat } from "@devplat/git-protocol";
import type { RepositoryId } from "../../access/repository-id.ts";
import type { BlockSums, FileSums } from "./block-sums.ts";
import type { Slice } from "./slices.ts";

/**
 * Storage of responses to fetches: whole responses, with the bytes that are sent, by repository and key. This contract does
 * not show the form in which a response is stored.
 *
 * - A response is found only after it was committed, and then it is complete, also after a crash at any time.
 * - The bytes that are served are the written ones: each slice is compared with its checksums first. A response that was
 *   not checked completely within the last hour is checked before it is served.
 * - A damaged response is no longer found. It is kept for analysis until it is removed.
 * - A response belongs to one code host, one repository and one key. It is not found under any other.
 * - A response that is removed or replaced can still be read by the requests that opened it.
 *
 * Every implementation passes the suite in response-store.suite.ts.
 */
export interface ResponseStore {
  /**
   * Opens a stored response and marks it as used now. Never throws.
   *
   * @returns undefined: there is none; `failed`: it is damaged, or the storage does not work
   */
  open(id: RepositoryId, key: string): Promise<StoredResponse | "failed" | undefined>;
  /** Starts to write a response. @throws a system error */
  create(id: RepositoryId, key: string): Promise<PendingResponse>;
  /**
   * Replaces a stored response by a reference to a pack of the mirror, if that has exactly the same pack. Its next use
   * stores the response itself again. Never rejects.
   *
   * @param format of the ids in the pack
   * @returns whether it is a reference now
   */
  refer(id: RepositoryId, key: string, format: ObjectFormat): Promise<boolean>;
  /** Responses of a repository and damaged ones, with their time of last use. Brings {@link figures} up to date. */
  list(id: RepositoryId): Promise<readonly ResponseFacts[]>;
  /** Removes one response. @returns false if another process removed it first. @throws a system error */
  remove(id: RepositoryId, name: string): Promise<boolean>;
  /** Removes all responses of a repository. None is found after it resolves. Never rejects. */
  removeAll(id: RepositoryId): Promise<void>;
  /** Number and bytes of the responses of a repository, as far as this process knows. */
  figures(id: RepositoryId): ResponseFigures;
  /** Repositories that have data here. @throws a system error */
  repositories(): Promise<readonly { readonly owner: string; readonly name: string }[]>;
  /** Removes leftovers of crashed processes. Call it before the first request. @returns the number of responses */
  removeLeftovers(): Promise<number>;
  /** Waits for running removals. */
  settled(): Promise<void>;
}

/** Bytes of a response, to be copied to another storage. */
export interface ResponseContent {
  readonly size: number;
  /** Checksums of all bytes. What {@link read} gives was not compared with them. */
  readonly sums: FileSums;
  /** Reads until the target is full or the response ends. @returns the number of bytes @throws a system error */
  readonly read: (target: Buffer, position: number) => Promise<number>;
  /** The caller must call this. */
  readonly close: () => Promise<void>;
}

/** A {@link ResponseStore} whose responses can be copied. */
export interface LocalResponseStore extends ResponseStore {
  /**
   * Opens a response to copy it, which is not a use of it.
   *
   * @throws StoredDataDamaged; a system error
   */
  content(id: RepositoryId, key: string): Promise<ResponseContent | undefined>;
}

/** A stored response that is open. */
export interface StoredResponse {
  /** Bytes of the response. */
  readonly size: number;
  /** Some bytes from the offset on, compared with their checksums. @throws what reading threw, StoredDataDamaged */
  slice(offset: number): Slice | Promise<Slice>;
  /** Whether too much memory is in use to read ahead. */
  crowded(): boolean;
  /** Undefined: there is no such file, or another program has changed it. */
  readonly soundFile?: SoundFile;
  /** Set if the bytes come from the bucket. */
  readonly source?: "object";
  /** The caller must call this when it waits for no slice. */
  close(): Promise<void>;
}

/**
 * An open file whose first bytes are the response. It was found whole within the last hour, so it may be sent without another
 * comparison while the kernel has it in memory.
 */
export interface SoundFile {
  readonly descriptor: number;
  /** Set if the file is the response and nothing else. If another file has the path, the inode tells. */
  readonly plain?: { readonly path: string; readonly inode: number };
  /**
   * Whether it is as it was when it was opened. Call it after its bytes are sent.
   *
   * @param reread the kernel may have read it from the disk again: all of it is compared with its checksums
   * @throws a system error
   */
  isStillSound(reread: boolean): Promise<boolean>;
  /**
   * Reads a part of the response from the file, so that the kernel has it in memory, and compares it with its checksums.
   *
   * @param offset a multiple of 128 KiB
   * @param end a multiple of 128 KiB, or the size of the response
   * @returns whether its bytes are the written ones
   * @throws a system error
   */
  readThrough(offset: number, end: number): Promise<boolean>;
}

/** A response that is being written. What is written can be read back before it is committed. */
export interface PendingResponse {
  /** Writes bytes at a position. @throws a system error */
  write(chunks: readonly Buffer[], position: number): Promise<void>;
  /**
   * Some written bytes from the offset on, shared with others that read the same.
   *
   * @param end of the bytes that are written
   * @param sums that the bytes must have
   * @throws what reading threw, StoredDataDamaged
   */
  slice(offset: number, end: number, sums: BlockSums): Slice | Promise<Slice>;
  /** The first bytes of the response, from its start. A chunk is valid until the next one. */
  chunks(size: number): AsyncIterable<Buffer>;
  /** Makes the response durable; after this it is found. @param sums of the whole response. @throws a system error */
  commit(sums: FileSums): Promise<void>;
  /** Removes it, unless it was committed. Never rejects. */
  discard(): Promise<void>;
  /** The caller must call this after the last read. Never rejects. */
  close(): Promise<void>;
}

export interface ResponseFigures {
  readonly responses: number;
  /** Sum of {@link ResponseFacts.size}. */
  readonly bytes: number;
  /** Sum of {@link ResponseFacts.fileBytes}. */
  readonly fileBytes: number;
  /** Number of responses that are references to packs of the mirror. */
  readonly references: number;
  /** Bytes of the responses that they stand for. */
  readonly referredBytes: number;
}

export interface ResponseFacts {
  readonly name: string;
  /** Bytes that count for limits. Those of a reference are the bytes of the response. */
  readonly size: number;
  /** Bytes on the disk. */
  readonly fileBytes: number;
  /** Time of last use, in milliseconds since the epoch. */
  readonly mtimeMs: number;
}
