import { createHash, type Hash } from "node:crypto";
import { Transform, pipeline, type Readable, type TransformCallback } from "node:stream";
import { ObjectStoreError } from "./errors.ts";

/**
 * The bytes of an object, compared with their length and, if it is known, with their SHA-256. The stream never ends without
 * an error if a byte is missing, too many or, with a hash, another one.
 */
export class ObjectBody extends Transform {
  readonly #name: string;
  readonly #hash: Hash | undefined;
  readonly #sha256: string | undefined;
  #left: number;

  constructor(name: string, length: number, sha256: string | undefined) {
    super({ highWaterMark: 1 << 18 });
    this.#name = name;
    this.#left = length;
    this.#sha256 = sha256;
    this.#hash = sha256 === undefined ? undefined : createHash("sha256");
  }

  override _transform(chunk: Buffer, _: BufferEncoding, callback: TransformCallback): void {
    this.#left -= chunk.length;
    if (this.#left < 0) return callback(this.#damaged("it is longer than the store said"));
    this.#hash?.update(chunk);
    callback(null, chunk);
  }

  override _flush(callback: TransformCallback): void {
    if (this.#left > 0) return callback(this.#damaged("it is shorter than the store said"));
    if (this.#hash !== undefined && this.#hash.digest("hex") !== this.#sha256)
      return callback(this.#damaged("it does not have the expected SHA-256"));
    callback();
  }

  #damaged(reason: string): ObjectStoreError {
    return new ObjectStoreError("damaged", `Cannot read the object ${JSON.stringify(this.#name)}: ${reason}`);
  }
}

/** @param toFault makes the error that ends the stream from one of the connection */
export function checkedBody(
  source: Readable,
  body: ObjectBody,
  toFault: (error: unknown) => unknown,
): Readable {
  source.on("error", (error: unknown) => body.destroy(toFault(error) as Error));
  // The callback is needed only so that an error is not thrown: the body has it already.
  pipeline(source, body, () => undefined);
  return body;
}
