/**
 * Writes WebAssembly: as much of the binary format (WebAssembly core specification 2.0, chapter 5) as one function over one memory needs.
 */

/** A value type, by its byte in the binary format. */
export const I32 = 0x7f;
export const V128 = 0x7b;

/** The operators without immediate operands that are used here, by their bytes. */
const OPERATORS = {
  "i32.eqz": [0x45],
  "i32.lt_u": [0x49],
  "i32.add": [0x6a],
  "i32.sub": [0x6b],
  "i32.and": [0x71],
  "i32.or": [0x72],
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

/** The body of a function, written from front to back. Operands come before their operator, as on WebAssembly's stack. */
export class FunctionBody {
  readonly #bytes: number[] = [];
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
    for (const operator of operators) this.#bytes.push(...OPERATORS[operator]);
    return this;
  }

  get(local: number): this {
    return this.#put(0x20, ...unsigned(local));
  }

  set(local: number): this {
    return this.#put(0x21, ...unsigned(local));
  }

  tee(local: number): this {
    return this.#put(0x22, ...unsigned(local));
  }

  constant(value: number): this {
    return this.#put(0x41, ...signed(value | 0));
  }

  /** Reads 4 bytes at the address on the stack plus `offset`. */
  load(offset: number): this {
    return this.#put(0x28, 2, ...unsigned(offset));
  }

  /** Writes 4 bytes. The stack has the address and the value. */
  store(offset: number): this {
    return this.#put(0x36, 2, ...unsigned(offset));
  }

  loadVector(offset: number): this {
    return this.#put(0xfd, 0x00, 4, ...unsigned(offset));
  }

  storeVector(offset: number): this {
    return this.#put(0xfd, 0x0b, 4, ...unsigned(offset));
  }

  /** Takes 16 of the 32 bytes of two vectors, by their numbers. */
  shuffle(bytes: readonly number[]): this {
    return this.#put(0xfd, 0x0d, ...bytes);
  }

  /** Repeats `body` as long as it leaves a number other than 0 on the stack. */
  repeat(body: () => void): this {
    this.#put(0x03, 0x40);
    body();
    return this.#put(0x0d, 0, 0x0b);
  }

  /** Runs `body` if the stack has a number other than 0. */
  when(body: () => void): this {
    this.#put(0x04, 0x40);
    body();
    return this.#put(0x0b);
  }

  /** The code as a function of the binary format. */
  encode(): number[] {
    const locals = this.#locals.flatMap((type) => [1, type]);
    return [...unsigned(this.#locals.length), ...locals, ...this.#bytes, 0x0b];
  }

  #put(...bytes: number[]): this {
    this.#bytes.push(...bytes);
    return this;
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
  const type = [0x60, parameters, ...Array<number>(parameters).fill(I32), 1, I32];
  const code = body.encode();
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, ...type]),
    ...section(3, [1, 0]),
    ...section(5, [1, 1, ...unsigned(pages), ...unsigned(pages)]),
    ...section(7, [2, ...name("memory"), 2, 0, ...name("run"), 0, 0]),
    ...section(10, [1, ...unsigned(code.length), ...code]),
    ...section(11, [1, 0, 0x41, 0, 0x0b, ...unsigned(data.length), ...data]),
  ]);
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...unsigned(content.length), ...content];
}

function name(text: string): number[] {
  return [text.length, ...Buffer.from(text)];
}

/** LEB128, as the binary format has numbers. */
function unsigned(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 0x80) return [...bytes, rest];
    bytes.push((rest & 0x7f) | 0x80);
  }
}

function signed(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>= 7) {
    if (rest >= -0x40 && rest < 0x40) return [...bytes, rest & 0x7f];
    bytes.push((rest & 0x7f) | 0x80);
  }
}
