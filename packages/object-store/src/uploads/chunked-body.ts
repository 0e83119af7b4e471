import { createHmac, hash } from "node:crypto";
import { EMPTY_SHA256, type ChunkSeed } from "../request-signer.ts";

/** Bytes that one hash and signature cover. */
export const CHUNK_BYTES = 1 << 20;
/** In place of the hash of the payload: each chunk has its own. */
export const CHUNKED_PAYLOAD = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";

const SIGNATURE_DIGITS = 64;
const LINE_END = Buffer.from("\r\n");

interface Chunk {
  /** Position of its first line. */
  readonly start: number;
  readonly bytes: Buffer;
  sha256: string;
}

/**
 * The body of a request as chunks with signatures (`aws-chunked` of SigV4). Its bytes are hashed once, in pieces that the
 * caller can use for checksums of its own. The memory is used for one request after the other.
 */
export class ChunkedBody {
  readonly #memory: Buffer;
  readonly #chunkBytes: number;
  #chunks: readonly Chunk[] = [];
  #end = 0;

  /** @param capacity bytes of the longest content @param chunkBytes of one chunk. Default 1 MiB */
  constructor(capacity: number, chunkBytes = CHUNK_BYTES) {
    this.#chunkBytes = chunkBytes;
    const chunks = Math.ceil(capacity / chunkBytes);
    this.#memory = Buffer.allocUnsafeSlow(
      capacity + (chunks + 1) * lineBytes(chunkBytes) + 2 * LINE_END.length * (chunks + 1),
    );
  }

  /** Bytes without signatures. */
  get length(): number {
    return this.#chunks.reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  /**
   * Reads the content, and hashes each chunk while it is in the cache of the processor.
   *
   * @param read fills a buffer from a position of the content
   * @param hashed called with the hash of each chunk
   */
  async fill(
    length: number,
    read: (target: Buffer, position: number) => Promise<void>,
    hashed: (position: number, sha256: Buffer) => void,
  ): Promise<void> {
    const chunks: Chunk[] = [];
    let start = 0;
    for (let position = 0; position < length; position += this.#chunkBytes) {
      const size = Math.min(this.#chunkBytes, length - position);
      const first = start + lineBytes(size);
      const bytes = this.#memory.subarray(first, first + size);
      await read(bytes, position);
      const sha256 = hash("sha256", bytes, "buffer");
      hashed(position, sha256);
      chunks.push({ start, bytes, sha256: sha256.toString("hex") });
      LINE_END.copy(this.#memory, first + size);
      start = first + size + LINE_END.length;
    }
    this.#chunks = chunks;
    this.#end = start;
  }

  /** The bytes to send for a request. They are valid until the next call. */
  sign(seed: ChunkSeed): Buffer {
    let { signature } = seed;
    const sign = (at: number, size: number, sha256: string): number => {
      const text = ["AWS4-HMAC-SHA256-PAYLOAD", seed.date, seed.scope, signature, EMPTY_SHA256, sha256];
      signature = createHmac("sha256", seed.key).update(text.join("\n")).digest("hex");
      return this.#memory.write(`${size.toString(16)};chunk-signature=${signature}\r\n`, at, "latin1");
    };
    for (const { start, bytes, sha256 } of this.#chunks) sign(start, bytes.length, sha256);
    const end = this.#end + sign(this.#end, 0, EMPTY_SHA256);
    LINE_END.copy(this.#memory, end);
    return this.#memory.subarray(0, end + LINE_END.length);
  }
}

/** Bytes of the line before a chunk. */
function lineBytes(size: number): number {
  return size.toString(16).length + ";chunk-signature=".length + SIGNATURE_DIGITS + LINE_END.length;
}
