import { recycleChunk } from "@devplat/git-store";

/** Chunks of a response. */
export interface ResponseChunks extends AsyncIterable<Buffer> {
  /** Takes the memory of a chunk back that nobody reads any more. Undefined: it is left to the garbage collector. */
  readonly recycle?: (chunk: Buffer) => void;
}

/** Bytes of a response that are computed before it begins: all bytes of most responses. */
export const PRIMED_BYTES = 512 * 1024;

/**
 * Computes the first half megabyte of a response. A failure in it, for instance of a damaged pack, is thrown before the
 * response begins, when the upstream can still answer the request.
 *
 * @param onFailure called with the error of a later failure; returns the error that the reader of the stream gets
 */
export async function primeStream(
  response: AsyncGenerator<Buffer, void, undefined>,
  onFailure: (error: unknown) => Error,
): Promise<ResponseChunks> {
  const primed: Buffer[] = [];
  for (let size = 0; size < PRIMED_BYTES;) {
    const next = await response.next();
    if (next.done === true) break;
    primed.push(next.value);
    size += next.value.length;
  }
  const all = async function* (): AsyncGenerator<Buffer, void, undefined> {
    try {
      yield* primed.splice(0);
      yield* response;
    } catch (error) {
      throw onFailure(error);
    } finally {
      await response.return(undefined);
    }
  };
  return Object.assign(all(), { recycle: recycleChunk });
}
