/**
 * Writes WebAssembly: as much of the binary format (WebAssembly core specification 2.0, chapter 5) as one function over one memory needs.
 */

/** A value type, by its byte in the binary format. */
export const I32 = 0x7f;
export const V128 = 0x7b;

/** The operators without immediate operands that are used here, by their bytes. Vector operators have a prefix and a LEB128 number. */
const OPERATORS = {
  "i32.lt_u": [0x49],
  "i32.add": [0x6a],
  "i32.and": [0x71],
  "i32.xor": [0x73],
  "i32.shl": [0x74],
  "i32.rotl": [0x77],
  "i32x4.splat": [0xfd, 0x11],
  "v128.andnot": [0xfd, 0x4f],
  "v128.and": [0xfd, 0x4e],
  "v128.or": [0xfd, 0x50],
  "v128.xor": [0xfd, 0x51],
  "i32x4.shl": [0xfd, 0xab, 0x01],
  "i32x4.shr_s": [0xfd, 0xac, 0x01],
  "i32x4.shr_u": [0xfd, 0xad, 0x01],
  "i32x4.add": [0xfd, 0xae, 0x01],
} as const;

export type Operator = keyof typeof OPERATORS;

/** Bytes that grow at their end. */
class Bytes {
  #bytes = new Uint8Array(32 * 1024);
  length = 0;

  put(byte: number): this {
    if (this.length === this.#bytes.length) {
      const larger = new Uint8Array(this.length * 2);
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    this.#bytes[this.length++] = byte;
    return this;
  }

  putAll(bytes: ArrayLike<number>): this {
    for (let index = 0; index < bytes.length; index++) this.put(bytes[index]!);
    return this;
  }

  /** LEB128, as the binary format has numbers. */
  unsigned(value: number): this {
    let rest = value;
    for (; rest >= 0x80; rest >>>= 7) this.put((rest & 0x7f) | 0x80);
    return this.put(rest);
  }

  signed(value: number): this {
    let rest = value;
    for (; rest < -0x40 || rest >= 0x40; rest >>= 7) this.put((rest & 0x7f) | 0x80);
    return this.put(rest & 0x7f);
  }

  all(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.length);
  }
}

/** The body of a function, written from front to back. Operands come before their operator, as on WebAssembly's stack. */
export class FunctionBody {
  readonly #code = new Bytes();
  readonly #locals: number[] = [];
  readonly #parameters: number;

  /** @param parameters the number of the function's parameters, which are its first locals */
  constructor(parameters: number) {
    this.#parameters = parameters;
  }

  /** Declares a local. @returns its index */
  local(type: number): number {
    return this.#parameters + this.#locals.push(type) - 1;
  }

  do(...operators: readonly Operator[]): this {
    for (const operator of operators) this.#code.putAll(OPERATORS[operator]);
    return this;
  }

  get(local: number): this {
    this.#code.put(0x20).unsigned(local);
    return this;
  }

  set(local: number): this {
    this.#code.put(0x21).unsigned(local);
    return this;
  }

  tee(local: number): this {
    this.#code.put(0x22).unsigned(local);
    return this;
  }

  constant(value: number): this {
    this.#code.put(0x41).signed(value | 0);
    return this;
  }

  /** Reads 4 bytes at the address on the stack plus `offset`. */
  load(offset: number): this {
    this.#code.put(0x28).put(2).unsigned(offset);
    return this;
  }

  /** Writes 4 bytes. The stack has the address and the value. */
  store(offset: number): this {
    this.#code.put(0x36).put(2).unsigned(offset);
    return this;
  }

  loadVector(offset: number): this {
    this.#code.put(0xfd).put(0x00).put(4).unsigned(offset);
    return this;
  }

  storeVector(offset: number): this {
    this.#code.put(0xfd).put(0x0b).put(4).unsigned(offset);
    return this;
  }

  /** Takes 16 of the 32 bytes of two vectors, by their numbers. */
  shuffle(bytes: readonly number[]): this {
    this.#code.put(0xfd).put(0x0d).putAll(bytes);
    return this;
  }

  /** Repeats `body` as long as it leaves a number other than 0 on the stack. */
  repeat(body: () => void): this {
    this.#code.put(0x03).put(0x40);
    body();
    this.#code.put(0x0d).put(0).put(0x0b);
    return this;
  }

  /** Runs `body` if the stack has a number other than 0. */
  when(body: () => void): this {
    this.#code.put(0x04).put(0x40);
    body();
    this.#code.put(0x0b);
    return this;
  }

  /** The code as a function of the binary format. */
  encode(): Uint8Array {
    const code = new Bytes().unsigned(this.#locals.length);
    for (const type of this.#locals) code.put(1).put(type);
    return code.putAll(this.#code.all()).put(0x0b).all();
  }
}

/** A module that exports its `memory` and one function `run` of i32 parameters and an i32 result. */
export function encodeModule(options: {
  readonly parameters: number;
  readonly body: FunctionBody;
  /** Pages of 64 KiB. */
  readonly pages: number;
  /** The start of the memory. */
  readonly data: Uint8Array;
}): Uint8Array<ArrayBuffer> {
  const { parameters, body, pages, data } = options;
  const code = body.encode();
  const module = new Bytes().putAll([0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
  const section = (id: number, write: (content: Bytes) => void): void => {
    const content = new Bytes();
    write(content);
    module.put(id).unsigned(content.length).putAll(content.all());
  };
  section(1, (types) => {
    types.putAll([1, 0x60]).unsigned(parameters);
    for (let index = 0; index < parameters; index++) types.put(I32);
    types.put(1).put(I32);
  });
  section(3, (functions) => functions.put(1).put(0));
  section(5, (memories) => memories.put(1).put(1).unsigned(pages).unsigned(pages));
  section(7, (exports) => {
    exports.put(2).put(6).putAll(Buffer.from("memory")).put(2).put(0);
    exports.put(3).putAll(Buffer.from("run")).put(0).put(0);
  });
  section(10, (functions) => functions.put(1).unsigned(code.length).putAll(code));
  section(11, (segments) => segments.putAll([1, 0, 0x41, 0, 0x0b]).unsigned(data.length).putAll(data));
  return module.all();
}
