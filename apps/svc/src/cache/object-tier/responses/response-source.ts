import { hash } from "node:crypto";
import type { ObjectSource } from "@devplat/object-store";
import { StoredDataDamaged } from "../../responses/block-sums.ts";
import type { ResponseContent } from "../../responses/response-store.ts";
import { SLICE_BYTES, type StoredObject } from "../manifest/manifest.ts";

/** Bytes of a SHA-256. */
const DIGEST_BYTES = 32;

/**
 * A stored response as the source of an upload. Bytes are compared with the checksums with which the response was written
 * before they are hashed, so that damage of the disk does not get into the bucket.
 */
export class ResponseSource implements ObjectSource {
  readonly length: number;
  readonly #content: ResponseContent;
  /** The SHA-256 of each slice that was read, in their order. */
  readonly #digests: Buffer;

  constructor(content: ResponseContent) {
    this.length = content.size;
    this.#content = content;
    this.#digests = Buffer.alloc(Math.ceil(content.size / SLICE_BYTES) * DIGEST_BYTES);
  }

  /** @throws StoredDataDamaged; a system error */
  async read(buffer: Uint8Array, position: number): Promise<void> {
    const target = Buffer.from(buffer.buffer, buffer.byteOffset, buffer.length);
    // Each slice is hashed while it is in the cache of the processor.
    for (let at = 0; at < target.length; at += SLICE_BYTES) {
      const slice = target.subarray(at, at + SLICE_BYTES);
      const count = await this.#content.read(slice, position + at);
      if (count < slice.length || !this.#content.sums.matches(slice, position + at)) {
        throw new StoredDataDamaged("a stored response does not match its checksums");
      }
      hash("sha256", slice, "buffer").copy(
        this.#digests,
        Math.floor((position + at) / SLICE_BYTES) * DIGEST_BYTES,
      );
    }
  }

  /** The list of slices; undefined if there is one slice. Call it when all was read. */
  get slices(): Buffer | undefined {
    return this.length > SLICE_BYTES ? this.#digests : undefined;
  }

  /** The object that was written. @param name below the folder of the repository */
  object(name: string): StoredObject {
    const digest = this.slices === undefined ? this.#digests.toString("hex") : hash("sha256", this.slices);
    return {
      name,
      length: this.length,
      sha256: digest,
      slicesSha256: this.slices === undefined ? undefined : digest,
    };
  }
}
