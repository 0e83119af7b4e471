import { hash } from "node:crypto";
import { Semaphore } from "@devplat/base/semaphore";
import { CHUNK_BYTES, ChunkedBody } from "./chunked-body.ts";
import { ObjectStoreError } from "../errors.ts";
import type { ObjectSource } from "../object-store.ts";
import type { S3Call } from "../s3-requests.ts";

/** Part of a source. */
export interface SourceRange {
  readonly position: number;
  readonly length: number;
}

/** Body of a call, with the hash of its payload if that has one. */
export type CallBody = Required<Pick<S3Call, "body">> & Pick<S3Call, "payloadSha256">;

/** Codes of a store that does not know chunks with signatures. */
const NOT_KNOWN: ReadonlySet<string> = new Set(["refused", "unsupported", "credentials_refused"]);

/**
 * Bodies of uploads. Each byte is hashed once: chunks of 1 MiB have their own signatures, and their hashes are the ones that
 * the source may need. A store that does not know such bodies gets ordinary ones. The number of buffers is limited.
 */
export class UploadBodies {
  readonly #places: Semaphore;
  readonly #capacity: number;
  #idle: ChunkedBody[] = [];
  /** Undefined: not known yet. */
  #takesChunks: boolean | undefined;

  /** @param parallel number of bodies in transfer @param capacity bytes of an ordinary one */
  constructor(parallel: number, capacity: number) {
    this.#places = new Semaphore(parallel);
    this.#capacity = capacity;
  }

  /**
   * Reads a part of a source, and sends it.
   *
   * @throws ObjectStoreError of the call; errors of the source; the reason of the signal
   */
  async send<Result>(
    source: ObjectSource,
    range: SourceRange,
    signal: AbortSignal | undefined,
    call: (body: CallBody) => Promise<Result>,
  ): Promise<Result> {
    const release = await this.#places.acquire(signal);
    try {
      if (this.#takesChunks === false || range.length <= CHUNK_BYTES)
        return await call(await plainBody(source, range));
      return await this.#sendChunks(source, range, call);
    } finally {
      release();
      if (this.#places.taken === 0) this.#idle = [];
    }
  }

  async #sendChunks<Result>(
    source: ObjectSource,
    range: SourceRange,
    call: (body: CallBody) => Promise<Result>,
  ): Promise<Result> {
    const isOrdinary = range.length <= this.#capacity;
    const body =
      (isOrdinary ? this.#idle.pop() : undefined) ?? new ChunkedBody(Math.max(range.length, this.#capacity));
    await body.fill(
      range.length,
      async (target, position) => source.read(target, range.position + position),
      (position, sha256) => source.hashed?.(range.position + position, sha256),
    );
    try {
      const result = await call({ body });
      this.#takesChunks = true;
      // The memory of a failed request may still be on its way to the socket.
      if (isOrdinary) this.#idle.push(body);
      return result;
    } catch (error) {
      const isRefused = error instanceof ObjectStoreError && NOT_KNOWN.has(error.code);
      if (!isRefused || this.#takesChunks === true) throw error;
      const result = await call(await plainBody(source, range));
      this.#takesChunks = false;
      return result;
    }
  }
}

/** A body whose payload has one hash. */
async function plainBody(source: ObjectSource, { position, length }: SourceRange): Promise<CallBody> {
  const body = Buffer.allocUnsafeSlow(length);
  for (let at = 0; at < length; at += CHUNK_BYTES) {
    const chunk = body.subarray(at, at + CHUNK_BYTES);
    await source.read(chunk, position + at);
    if (length > CHUNK_BYTES) source.hashed?.(position + at, hash("sha256", chunk, "buffer"));
  }
  const payloadSha256 = hash("sha256", body, "hex");
  if (length <= CHUNK_BYTES) source.hashed?.(position, Buffer.from(payloadSha256, "hex"));
  return { body, payloadSha256 };
}
