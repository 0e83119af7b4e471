import { SshProtocolError } from "./errors.ts";

/** Longest mpint in bytes: an RSA modulus of 16,384 bits, OpenSSH's own limit, and a byte for the sign. */
export const MAX_MPINT_BYTES = 16_384 / 8 + 1;

const HIGH_BIT = 0x80;
/** Names are printable US-ASCII without space and comma (RFC 4251 section 6). */
const NAME = /^[!-+\--~]+$/;

/**
 * Reads the data types of RFC 4251 section 5 one after another. Buffers that it returns are views of the input, so
 * that no length in the input can cause an allocation. Every method throws `SshProtocolError` `truncated` when the
 * bytes end too early.
 */
export class WireReader {
  readonly #bytes: Buffer;
  #offset = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Number of bytes read. */
  get offset(): number {
    return this.#offset;
  }

  get remaining(): number {
    return this.#bytes.length - this.#offset;
  }

  /** The next `length` bytes as they are. */
  raw(length: number): Buffer {
    if (length > this.remaining) throw new SshProtocolError("truncated", "the bytes end inside a value");
    this.#offset += length;
    return this.#bytes.subarray(this.#offset - length, this.#offset);
  }

  /** Everything that was not read. */
  rest(): Buffer {
    return this.raw(this.remaining);
  }

  byte(): number {
    return this.raw(1).readUInt8();
  }

  /** Every value but 0 is true. */
  boolean(): boolean {
    return this.byte() !== 0;
  }

  uint32(): number {
    return this.raw(4).readUInt32BE();
  }

  uint64(): bigint {
    return this.raw(8).readBigUInt64BE();
  }

  string(): Buffer {
    return this.raw(this.uint32());
  }

  /** A string for people: UTF-8, with U+FFFD in place of invalid bytes. */
  text(): string {
    return this.string().toString("utf8");
  }

  /** A name of an algorithm, method or extension. @throws SshProtocolError `bad_value` */
  name(): string {
    const name = this.string().toString("latin1");
    if (!NAME.test(name)) throw new SshProtocolError("bad_value", "a name is empty or has other characters");
    return name;
  }

  /** Names separated by commas. @throws SshProtocolError `bad_value` for an empty name or other characters */
  nameList(): string[] {
    const list = this.string().toString("latin1");
    const names = list === "" ? [] : list.split(",");
    if (!names.every((name) => NAME.test(name))) {
      throw new SshProtocolError("bad_value", "a name list has an empty name or other characters");
    }
    return names;
  }

  /**
   * A number that is not negative, as big-endian bytes without leading zeros; zero is empty.
   *
   * @throws SshProtocolError `bad_value` for a negative number or unneeded leading zeros, `too_long`
   */
  mpint(): Buffer {
    const bytes = this.string();
    if (bytes.length > MAX_MPINT_BYTES) throw new SshProtocolError("too_long", "a number is too long");
    const [first = 1, second = 0] = bytes;
    if (first >= HIGH_BIT) throw new SshProtocolError("bad_value", "a number is negative");
    if (first === 0 && second < HIGH_BIT) {
      throw new SshProtocolError("bad_value", "a number has unneeded leading zeros");
    }
    return first === 0 ? bytes.subarray(1) : bytes;
  }

  /** @throws SshProtocolError `trailing_data` when something was not read */
  end(): void {
    if (this.remaining > 0) throw new SshProtocolError("trailing_data", "bytes follow the end of a value");
  }
}

/** Writes the data types of RFC 4251 section 5. Every method returns the writer itself. */
export class WireWriter {
  readonly #parts: Buffer[] = [];

  raw(bytes: Uint8Array): this {
    this.#parts.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    return this;
  }

  byte(value: number): this {
    return this.raw(Uint8Array.of(value));
  }

  boolean(value: boolean): this {
    return this.byte(value ? 1 : 0);
  }

  uint32(value: number): this {
    const bytes = Buffer.allocUnsafe(4);
    bytes.writeUInt32BE(value);
    return this.raw(bytes);
  }

  uint64(value: bigint): this {
    const bytes = Buffer.allocUnsafe(8);
    bytes.writeBigUInt64BE(value);
    return this.raw(bytes);
  }

  /** Bytes, or text as UTF-8. */
  string(value: Uint8Array | string): this {
    const bytes = typeof value === "string" ? Buffer.from(value) : value;
    return this.uint32(bytes.length).raw(bytes);
  }

  nameList(names: readonly string[]): this {
    return this.string(names.join(","));
  }

  /** A number that is not negative, from big-endian bytes. */
  mpint(value: Uint8Array): this {
    const bytes = withoutLeadingZeros(value);
    const sign = (bytes[0] ?? 0) >= HIGH_BIT ? Buffer.alloc(1) : Buffer.alloc(0);
    return this.string(Buffer.concat([sign, bytes]));
  }

  bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

/** The shortest big-endian form of a number; zero is empty. */
export function withoutLeadingZeros(value: Uint8Array): Buffer {
  const first = value.findIndex((byte) => byte !== 0);
  return Buffer.from(first === -1 ? [] : value.subarray(first));
}
