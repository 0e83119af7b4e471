import type { Deflate, Inflate } from "node:zlib";

/**
 * Node's internal handle under `zlib.Inflate` and `zlib.Deflate`. It is undocumented. A handle that is used again saves the
 * memory of zlib's state for each call: 300 KB for deflate, which V8 counts, and collects garbage for.
 */
interface PrivateHandle {
  reset(): void;
  writeSync(
    flush: number,
    input: Uint8Array,
    inputStart: number,
    inputLength: number,
    output: Uint8Array,
    outputStart: number,
    outputLength: number,
  ): void;
  onerror: (message: string, errno: number, code: string) => void;
}

/** A zlib stream that is used many times, by synchronous calls. The users check its behaviour before use. */
export class ZlibHandle {
  /** Error number of zlib since the caller set it to 0. */
  errno = 0;
  readonly handle: PrivateHandle;
  /** Owns the handle. This reference keeps it from garbage collection. */
  readonly engine: object;
  /** [bytes of output left, bytes of input left], written by the handle. */
  readonly #state: Uint32Array;

  /** @throws {TypeError} if this version of Node has another handle */
  constructor(engine: Inflate | Deflate) {
    const inner = engine as unknown as { _handle: PrivateHandle; _writeState: Uint32Array };
    this.engine = engine;
    // oxlint-disable-next-line no-underscore-dangle -- the names are Node's
    this.handle = inner._handle;
    // oxlint-disable-next-line no-underscore-dangle -- the names are Node's
    this.#state = inner._writeState;
    if (typeof this.handle.writeSync !== "function" || !(this.#state instanceof Uint32Array)) {
      throw new TypeError("this Node has no usable zlib handle");
    }
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- not an EventTarget
    this.handle.onerror = (_message, errno) => {
      this.errno = errno;
    };
  }

  /** Bytes of output that the last write left free. */
  get outputLeft(): number {
    return this.#state[0]!;
  }

  /** Bytes of input that the last write did not use. */
  get inputLeft(): number {
    return this.#state[1]!;
  }
}
