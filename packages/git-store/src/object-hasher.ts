import { createHash, type Hash } from "node:crypto";
import type { ObjectFormat } from "@devplat/git-protocol";
import { hashInPlace, writeTitle, type HashInput } from "./object-format.ts";
import { CheckedSha1 } from "./sha1/checked-sha1.ts";

/** Computes object ids, of one object after the other. */
export interface ObjectHasher {
  /**
   * Hashes a whole object, as {@link hashInPlace} does.
   *
   * @throws {GitStoreError} `hash_collision` if the hasher looks for attacks and finds one
   */
  hash(input: Omit<HashInput, "format">): void;
  /** Begins an object that comes in pieces. `title` is its header, such as `blob 12\0`. */
  begin(title: string): void;
  /** @throws {GitStoreError} as {@link hash} */
  update(piece: Uint8Array): void;
  /**
   * Writes the binary id of the object that was begun.
   *
   * @throws {GitStoreError} as {@link hash}
   */
  end(target: Buffer, targetStart: number): void;
}

/** Makes a hasher for this thread. With `detectCollisions` it refuses SHA-1 objects of a collision attack. */
export function createObjectHasher(format: ObjectFormat, detectCollisions: boolean): ObjectHasher {
  return detectCollisions && format === "sha1" ? new CheckedHasher() : new PlainHasher(format);
}

class PlainHasher implements ObjectHasher {
  readonly #format: ObjectFormat;
  #pieces: Hash | undefined;

  constructor(format: ObjectFormat) {
    this.#format = format;
  }

  hash(input: Omit<HashInput, "format">): void {
    hashInPlace({ ...input, format: this.#format });
  }

  begin(title: string): void {
    this.#pieces = createHash(this.#format).update(title);
  }

  update(piece: Uint8Array): void {
    this.#pieces?.update(piece);
  }

  end(target: Buffer, targetStart: number): void {
    this.#pieces?.digest().copy(target, targetStart);
    this.#pieces = undefined;
  }
}

/** Its memory is used again by the next hasher of the thread. */
let checkedSha1: CheckedSha1 | undefined;

class CheckedHasher implements ObjectHasher {
  readonly #sha1 = (checkedSha1 ??= new CheckedSha1());

  hash({ type, buffer, start, size, target, targetStart }: Omit<HashInput, "format">): void {
    const from = writeTitle(type, size, buffer, start);
    this.#sha1.begin();
    this.#sha1.update(buffer.subarray(from, start + size));
    this.#sha1.digestInto(target, targetStart);
  }

  begin(title: string): void {
    this.#sha1.begin();
    this.#sha1.update(Buffer.from(title, "latin1"));
  }

  update(piece: Uint8Array): void {
    this.#sha1.update(piece);
  }

  end(target: Buffer, targetStart: number): void {
    this.#sha1.digestInto(target, targetStart);
  }
}
