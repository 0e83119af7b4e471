import { hash } from "node:crypto";
import type { ObjectSource } from "@devplat/object-store";
import { StoredDataDamaged } from "../../responses/block-sums.ts";
import type { ResponseContent } from "../../responses/response-store.ts";
import { SLICE_BYTES, type StoredObject } from "../manifest/manifest.ts";

/** Bytes of a SHA-256. */
const DIGEST_BYTES = 32;

/**
 * A stored response as the source of an upload. Bytes are compared with the checksums with which the response was written
 * before they are hashed, so that damage of the disk does not get into the bucket. Each byte is hashed once: the object store
 * gives the hashes of the slices that it signs.
 */
export class ResponseSource implements ObjectSource {
  readonly length: number;
  readonly #content: ResponseContent;
  /** The SHA-256 of each slice that was sent, in their order. */
  readonly #digests: Buffer;

  constructor(content: ResponseContent) {
    this.length = content.size;
    this.#content = content;
    this.#digests = Buffer.alloc(Math.ceil(content.size / SLICE_BYTES) * DIGEST_BYTES);
  }

  /** @throws StoredDataDamaged; a system error */
  async read(buffer: Buffer, position: number): Promise<void> {
    const count = await this.#content.read(buffer, position);
    if (count < buffer.length || !this.#content.sums.matches(buffer, position)) {
      throw new StoredDataDamaged("a stored response does not match its checksums");
    }
  }

  hashed(position: number, sha256: Buffer): void {
    sha256.copy(this.#digests, (position / SLICE_BYTES) * DIGEST_BYTES);
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
