import type { RepositoryId } from "../../access/repository-id.ts";
import type { BlockSums, FileSums } from "./block-sums.ts";
import type { Slice } from "./slices.ts";

/**
 * Where responses to fetches are stored: whole responses, byte by byte as they go over the wire, by repository and key.
 * The form in which a response is stored is not visible through this contract.
 *
 * - A response is found only after it was committed, and then as a whole: also after a crash at any instant.
 * - Bytes that are given out are those that were written: each slice is compared with checksums first. A response that
 *   was not read through within the last hour is read through before it is given out.
 * - A damaged response is not found any more. It is kept apart, so that it can be looked at, until it is removed.
 * - A response belongs to one code host, one repository and one key. It is not found under any other.
 * - A response that is removed, or replaced, stays readable to those who have it open.
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
  /** Responses of a repository and damaged ones, with their time of last use. Brings {@link figures} up to date. */
  list(id: RepositoryId): Promise<readonly ResponseFacts[]>;
  /** Removes one response. @returns false: another process was first. @throws a system error */
  remove(id: RepositoryId, name: string): Promise<boolean>;
  /** Removes all responses of a repository. When it resolves none is found any more. Never rejects. */
  removeAll(id: RepositoryId): Promise<void>;
  /** Number and bytes of the responses of a repository, as far as this process knows. */
  figures(id: RepositoryId): { readonly responses: number; readonly bytes: number };
  /** Repositories that have data here. @throws a system error */
  repositories(): Promise<readonly { readonly owner: string; readonly name: string }[]>;
  /** Removes what crashed processes left. To be called before the first request. @returns the number of responses */
  removeLeftovers(): Promise<number>;
  /** Waits for removals that are under way. */
  settled(): Promise<void>;
}

/** A stored response that is open. */
export interface StoredResponse {
  /** Bytes of the response. */
  readonly size: number;
  /** Some bytes from the offset on, compared with their checksums. @throws what reading threw, StoredDataDamaged */
  slice(offset: number): Slice | Promise<Slice>;
  /** Whether so much memory is in use that nothing should be read ahead. */
  crowded(): boolean;
  /** Must be called when no slice is waited for. */
  close(): Promise<void>;
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
  /** The first bytes of the response, from its start. Each chunk belongs to the consumer. */
  chunks(size: number): AsyncIterable<Buffer>;
  /** Makes the response durable and lets it be found. @param sums of the whole response. @throws a system error */
  commit(sums: FileSums): Promise<void>;
  /** Removes it, unless it was committed. Never rejects. */
  discard(): Promise<void>;
  /** Must be called when nobody reads from it any more. Never rejects. */
  close(): Promise<void>;
}

export interface ResponseFacts {
  readonly name: string;
  readonly size: number;
  /** Time of last use, in milliseconds since the epoch. */
  readonly mtimeMs: number;
}
