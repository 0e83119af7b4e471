import { isUtf8 } from "node:buffer";
import { FuseProtocolError } from "./errors.ts";
import type { FileName } from "./request.ts";

/** Longest name of a directory entry (NAME_MAX). The kernel passes on up to 1024 bytes. */
export const MAX_NAME_BYTES = 255;

const TWO_32 = 2 ** 32;
const SLASH = 0x2f;
const DOT = 0x2e;

/**
 * Reads the fields of a request one after another, in little endian. Every method throws `FuseProtocolError` `truncated` when the
 * bytes end too early.
 */
export class RequestReader {
  readonly #bytes: Buffer;
  readonly #unique: bigint | undefined;
  #offset: number;
  #end: number;

  /** @param unique number of the request, for errors; undefined if it gets no reply */
  constructor(bytes: Buffer, offset: number, unique: bigint | undefined) {
    this.#bytes = bytes;
    this.#offset = offset;
    this.#end = bytes.length;
    this.#unique = unique;
  }

  get remaining(): number {
    return this.#end - this.#offset;
  }

  uint32(): number {
    return this.#bytes.readUInt32LE(this.#take(4));
  }

  uint64(): bigint {
    return this.#bytes.readBigUInt64LE(this.#take(8));
  }

  /** An unsigned number of 64 bits that need not be exact beyond 2^53. */
  length(): number {
    const at = this.#take(8);
    return this.#bytes.readUInt32LE(at) + this.#bytes.readUInt32LE(at + 4) * TWO_32;
  }

  /** The same, signed. */
  signed(): number {
    const at = this.#take(8);
    return this.#bytes.readUInt32LE(at) + this.#bytes.readInt32LE(at + 4) * TWO_32;
  }

  skip(length: number): void {
    this.#take(length);
  }

  /** Ignores bytes at the end. */
  dropEnd(length: number): void {
    if (length > this.remaining) throw this.#truncated();
    this.#end -= length;
  }

  /** A view of the next bytes. */
  view(length: number): Buffer {
    const at = this.#take(length);
    return this.#bytes.subarray(at, at + length);
  }

  /** A copy of the bytes up to the next NUL. */
  text(): Buffer {
    const end = this.#bytes.indexOf(0, this.#offset);
    if (end === -1 || end >= this.#end) throw this.#truncated();
    const copy = Buffer.from(this.#bytes.subarray(this.#offset, end));
    this.#offset = end + 1;
    return copy;
  }

  /** Name of a directory entry. @throws FuseProtocolError `name_too_long`, `bad_name` */
  name(): FileName {
    const name = this.attributeName();
    if (name.bytes.includes(SLASH)) throw this.#error("bad_name", "a name contains a slash");
    if (name.bytes.length <= 2 && name.bytes.every((byte) => byte === DOT))
      throw this.#error("bad_name", "a name is . or ..");
    return name;
  }

  /** Name of an extended attribute. @throws FuseProtocolError `name_too_long`, `bad_name` for an empty one */
  attributeName(): FileName {
    const bytes = this.text();
    if (bytes.length > MAX_NAME_BYTES)
      throw this.#error("name_too_long", `a name has more than ${MAX_NAME_BYTES} bytes`);
    if (bytes.length === 0) throw this.#error("bad_name", "a name is empty");
    return { bytes, text: isUtf8(bytes) ? bytes.toString("utf8") : undefined };
  }

  /** @throws FuseProtocolError `trailing_data` when something was not read */
  end(): void {
    if (this.remaining > 0) throw this.#error("trailing_data", "bytes follow the last value of a request");
  }

  #take(length: number): number {
    if (length > this.remaining) throw this.#truncated();
    this.#offset += length;
    return this.#offset - length;
  }

  #truncated(): FuseProtocolError {
    return this.#error("truncated", "a request ends inside a value");
  }

  #error(code: ConstructorParameters<typeof FuseProtocolError>[0], message: string): FuseProtocolError {
    return new FuseProtocolError(code, message, this.#unique);
  }
}
