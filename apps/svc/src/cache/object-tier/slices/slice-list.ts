import { hash, webcrypto } from "node:crypto";
import type { StoredObject } from "../manifest/manifest.ts";
import { DIGEST_BYTES, sliceCount } from "./object-digest.ts";

/** Bytes from which on a hash is made in a thread of libuv. Smaller ones cost less here. */
const IN_THREAD_BYTES = 64 << 10;

/** Checksums of the slices of an object. */
export class SliceList {
  /** Bytes in memory. */
  readonly bytes: number;
  readonly #digests: Buffer;

  private constructor(digests: Buffer) {
    this.#digests = digests;
    this.bytes = digests.length;
  }

  /** The list of an object of one slice: its own checksum. */
  static ofOne({ sha256 }: Pick<StoredObject, "sha256">): SliceList {
    return new SliceList(Buffer.from(sha256, "hex"));
  }

  /** @returns undefined if it is not the list of an object of this length */
  static read(bytes: Buffer, length: number): SliceList | undefined {
    return bytes.length === listBytes(length) ? new SliceList(bytes) : undefined;
  }

  async matches(index: number, slice: Buffer): Promise<boolean> {
    const wanted = this.#digests.subarray(index * DIGEST_BYTES, (index + 1) * DIGEST_BYTES);
    if (slice.length < IN_THREAD_BYTES) return hash("sha256", slice, "buffer").equals(wanted);
    const digest = await webcrypto.subtle.digest("SHA-256", slice as Uint8Array<ArrayBuffer>);
    return Buffer.from(digest).equals(wanted);
  }
}

/** Bytes of the list of an object of this length. */
export function listBytes(length: number): number {
  return sliceCount(length) * DIGEST_BYTES;
}
