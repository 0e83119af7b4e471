import { createDeflate, deflateSync, inflateSync } from "node:zlib";
import { ZlibHandle } from "./zlib-handle.ts";

/** Maximum content of {@link deflateShort}, bytes. Deflating this much takes about a millisecond. */
export const MAX_SHORT_BYTES = 64 * 1024;
/** More than zlib needs for content that does not shrink (deflateBound of zlib.h: about 0.1 %). */
const OUTPUT_BYTES = MAX_SHORT_BYTES + 4096;

// zlib.h
const Z_FINISH = 4;

/** Deflates with one handle, and into one buffer. */
class Deflater {
  readonly #zlib = new ZlibHandle(createDeflate());
  readonly #output = Buffer.allocUnsafeSlow(OUTPUT_BYTES);

  /** @returns bytes that the next call overwrites; undefined when they have no room */
  deflate(content: Uint8Array): Buffer | undefined {
    const zlib = this.#zlib;
    zlib.errno = 0;
    zlib.handle.reset();
    zlib.handle.writeSync(Z_FINISH, content, 0, content.length, this.#output, 0, OUTPUT_BYTES);
    // Without room left the stream may be incomplete.
    if (zlib.errno !== 0 || zlib.outputLeft === 0) return undefined;
    return this.#output.subarray(0, OUTPUT_BYTES - zlib.outputLeft);
  }
}

let deflater: Deflater | undefined;

/**
 * Deflates short content like `deflateSync`, though not always to the same bytes. It allocates nothing, and takes 4 µs for 100 bytes, not 23; not 150
 * where the allocator gives blocks back immediately, as in svc.
 *
 * @returns the zlib stream. The next call in this thread overwrites it.
 */
export function deflateShort(content: Uint8Array): Buffer {
  if (content.length > MAX_SHORT_BYTES || !handleWorks()) return deflateSync(content);
  return (deflater ??= new Deflater()).deflate(content) ?? deflateSync(content);
}

let works: boolean | undefined;

/** Checks each assumption about the handle, once. */
function handleWorks(): boolean {
  if (works !== undefined) return works;
  try {
    const content = Buffer.from("an object, an object, an object");
    const made = new Deflater();
    const first = Buffer.from(made.deflate(content) ?? []);
    const second = made.deflate(content);
    works = inflateSync(first).equals(content) && second?.equals(first) === true;
  } catch {
    works = false;
  }
  return works;
}
