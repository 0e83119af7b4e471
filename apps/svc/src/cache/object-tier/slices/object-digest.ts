import { createHash, type Hash } from "node:crypto";
import { SLICE_BYTES, type StoredObject } from "../manifest/manifest.ts";

/** Bytes of a SHA-256. A list of slices is nothing but these. */
export const DIGEST_BYTES = 32;

/** Checksums of the bytes of an object. */
export interface ObjectDigest {
  readonly length: number;
  /** In hex. */
  readonly sha256: string;
  /** The SHA-256 of each slice, one after another. Undefined: the object is one slice. */
  readonly slices: Uint8Array | undefined;
}

/** Number of slices of an object. An empty one has one, which is empty. */
export function sliceCount(length: number): number {
  return Math.max(1, Math.ceil(length / SLICE_BYTES));
}

/** Makes the checksum of an object and those of its slices as its bytes arrive. */
export class ObjectDigestBuilder {
  readonly #whole = createHash("sha256");
  readonly #slices: Buffer[] = [];
  /** Undefined during the first slice, whose hash is the one of the whole object so far. */
  #slice: Hash | undefined;
  #length = 0;

  push(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const end = Math.min(bytes.length, at + SLICE_BYTES - (this.#length % SLICE_BYTES));
      const part = bytes.subarray(at, end);
      if (this.#length >= SLICE_BYTES && this.#length % SLICE_BYTES === 0) this.#nextSlice();
      this.#whole.update(part);
      this.#slice?.update(part);
      this.#length += part.length;
      at = end;
    }
  }

  finish(): ObjectDigest {
    const isOne = this.#length <= SLICE_BYTES;
    if (!isOne) this.#slices.push(this.#slice!.digest());
    return {
      length: this.#length,
      sha256: this.#whole.digest("hex"),
      slices: isOne ? undefined : Buffer.concat(this.#slices),
    };
  }

  #nextSlice(): void {
    this.#slices.push((this.#slice ?? this.#whole.copy()).digest());
    this.#slice = createHash("sha256");
  }
}

/** @param name below the folder of the repository */
export function storedObject(name: string, { length, sha256, slices }: ObjectDigest): StoredObject {
  const slicesSha256 = slices && createHash("sha256").update(slices).digest("hex");
  return { name, length, sha256, slicesSha256 };
}
