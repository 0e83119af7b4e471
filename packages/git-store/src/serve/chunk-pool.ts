/** Bytes of a chunk: four side-band packets with their headers. More would cost memory, fewer would cost calls. */
export const CHUNK_BYTES = 4 * 65_520;
/** Maximum unused chunks that are kept, 8 MB: as much of a response is in memory while it is written and sent. */
const MAX_UNUSED = 32;
/** Milliseconds after which unused chunks are freed. */
const UNUSED_MS = 5000;

/** Memory of this thread's chunks that are not in use. */
const unused: ArrayBuffer[] = [];
let freeing: NodeJS.Timeout | undefined;
/** Memory of all chunks, so that no other memory is taken for one. */
const made = new WeakSet<ArrayBufferLike>();

/**
 * Returns the memory of a chunk. V8 counts what is allocated outside its heap, and collects garbage for it: without reuse a
 * response of 3.5 MB cost more for that than for its bytes.
 */
export function takeChunk(): Buffer {
  const memory = unused.pop();
  if (memory !== undefined) return Buffer.from(memory);
  const chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  made.add(chunk.buffer);
  return chunk;
}

/**
 * Gives the memory of a chunk back, which then is a part of another response. Nobody may read the chunk any more, the
 * operating system included. Other buffers are ignored.
 */
export function recycleChunk(chunk: Buffer): void {
  const memory = chunk.buffer;
  if (!(memory instanceof ArrayBuffer) || !made.has(memory)) return;
  if (unused.length >= MAX_UNUSED || unused.includes(memory)) return;
  unused.push(memory);
  freeing ??= setTimeout(() => {
    freeing = undefined;
    unused.length = 0;
  }, UNUSED_MS).unref();
}
