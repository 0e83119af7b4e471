import type { Readable } from "node:stream";

/**
 * Which connections carry a request. `control` is for small objects that decide something, such as a manifest. `bulk` is for
 * long transfers. They have separate connections, so that a transfer never delays a decision.
 */
export type Traffic = "control" | "bulk";

/** Condition of a write: the object is still the one with this ETag, or there is none. */
export type WriteCondition = { readonly ifMatch: string } | { readonly ifAbsent: true };

export interface CallOptions {
  /** Ends the call, which rejects with the reason of the signal. */
  readonly signal?: AbortSignal;
}

/** Bytes of an object from `first`, counted from 0. */
export interface ByteRange {
  readonly first: number;
  /** Number of bytes, at least 1. A shorter object gives fewer. */
  readonly length: number;
}

export interface GetOptions extends CallOptions {
  readonly range?: ByteRange;
  /** ETag that the caller has. If the object still has it, the result is `{ modified: false }`. */
  readonly ifNoneMatch?: string;
  /** Rejects with `condition_failed` unless the object has this ETag. For ranges of one revision. */
  readonly ifMatch?: string;
  /** SHA-256 in hex of the whole object. The stream ends with `damaged` if the bytes have another one. Not with a range. */
  readonly sha256?: string;
  /** Default `bulk`. */
  readonly traffic?: Traffic;
}

export interface ObjectInfo {
  /** With its quotes, as the store gives it. It is not a hash of the content. */
  readonly etag: string;
  /** Bytes of the whole object. */
  readonly length: number;
  /** Milliseconds since the epoch, by the clock of the store; in whole seconds. */
  readonly lastModified: number | undefined;
}

export type GetResult =
  | { readonly modified: false; readonly etag: string }
  | (ObjectInfo & {
      readonly modified: true;
      /** The object or its range. It ends with an ObjectStoreError if the transfer breaks. The caller must read or destroy it. */
      readonly body: Readable;
      /** Bytes that `body` gives. */
      readonly bodyLength: number;
    });

export interface PutOptions extends CallOptions {
  readonly condition?: WriteCondition;
  /** Default `control`. */
  readonly traffic?: Traffic;
}

export interface PutLargeOptions extends PutOptions {
  /** Whether a file that fits into one part is sent as a multipart upload too. For trials. Default false. */
  readonly alwaysInParts?: boolean;
}

/** Content of an object that is about to be written. Reading a part of it again gives the same bytes. */
export interface ObjectSource {
  readonly length: number;
  /** Fills a buffer of up to 1 MiB from a position, which is a multiple of that. @throws any error, which ends the write */
  read(buffer: Buffer, position: number): Promise<void>;
  /** Called with the SHA-256 of each MiB (2^20 bytes) that was read. It may be called again. */
  hashed?(position: number, sha256: Buffer): void;
  /** Called before the object appears. @throws if what was read is not the content any more */
  checkUnchanged?(): Promise<void>;
}

export interface Written {
  readonly etag: string;
}

export interface ListedObject extends ObjectInfo {
  readonly key: string;
}

export interface ListOptions extends CallOptions {
  /** Maximum number of entries, 1 to 1000. Default 1000. */
  readonly limit?: number;
  /** `next` of the page before. */
  readonly from?: string;
}

export interface Page<Entry> {
  readonly entries: readonly Entry[];
  /** Undefined: this is the last page. */
  readonly next: string | undefined;
}

/** A multipart upload that is not complete. */
export interface OpenUpload {
  readonly key: string;
  readonly uploadId: string;
  /** Milliseconds since the epoch, by the clock of the store. */
  readonly startedAt: number | undefined;
}

/**
 * Objects in one bucket. Names are UTF-8 with `/` between segments, see `checkKey`.
 *
 * Reads are repeated after a passing fault until their time limit is over. A write with a condition is repeated only if the
 * store refused it or never got it, because its own first try could be what the second one finds. Otherwise it rejects with
 * `outcomeUnknown`.
 *
 * Every method rejects with an ObjectStoreError.
 */
export interface ObjectStore {
  /** Resolves with the first byte. @throws ObjectStoreError `missing`, `condition_failed` */
  get(key: string, options?: GetOptions): Promise<GetResult>;
  /** @throws ObjectStoreError `missing` */
  head(key: string, options?: CallOptions): Promise<ObjectInfo>;
  /** Writes a small object. @throws ObjectStoreError `condition_failed` */
  put(key: string, bytes: Uint8Array, options?: PutOptions): Promise<Written>;
  /**
   * Writes the content of a file, in parts and concurrently. The object appears when all of it is there. Failed uploads are
   * aborted.
   *
   * @param source path of a file that does not change during the upload (if its length changes, the upload fails with
   *   `damaged`), or where else the content comes from
   * @throws ObjectStoreError `condition_failed`; a system error if the file cannot be read; errors of the source
   */
  putLarge(
    key: string,
    source: string | ObjectSource,
    options?: PutLargeOptions,
  ): Promise<Written & { readonly length: number }>;
  /**
   * Deletes an object. A missing object is not an error, also with `ifMatch`.
   *
   * @param options `ifMatch` only where the probe says that the store honours it: other stores delete all the same
   * @throws ObjectStoreError `condition_failed`
   */
  delete(key: string, options?: CallOptions & { readonly ifMatch?: string }): Promise<void>;
  /** Objects whose names begin with `prefix`, sorted by the bytes of their names. */
  list(prefix: string, options?: ListOptions): Promise<Page<ListedObject>>;
  /**
   * Multipart uploads that are not complete. MinIO lists only those whose name is `prefix`. versitygw refuses every second
   * page, so a sweeper aborts what is old on the first page and lists again.
   *
   * @throws ObjectStoreError `unsupported`
   */
  listUploads(prefix: string, options?: ListOptions): Promise<Page<OpenUpload>>;
  /** Removes the parts of an upload. A missing upload is not an error. */
  abortUpload(upload: Pick<OpenUpload, "key" | "uploadId">, options?: CallOptions): Promise<void>;
  /** Milliseconds since the epoch, by the clock of the store as its last response told it. */
  now(): number;
  /** Ends all connections. */
  close(): Promise<void>;
}
