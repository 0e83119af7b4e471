import { createHash, type Hash } from "node:crypto";
import { PackWriter, type PackPlan, type PackSink, type PackSource } from "../serve/pack-writer.ts";

/** Bytes of one chunk. */
const CHUNK_BYTES = 256 * 1024;

/** Collects the bytes of a pack in one buffer, and copies it out as a chunk whenever it is full. */
class ChunkSink implements PackSink {
  readonly #hash: Hash;
  readonly #chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  readonly #spill: Buffer[] = [];
  #at = 0;
  #before = 0;

  constructor(hash: Hash) {
    this.#hash = hash;
  }

  get length(): number {
    return this.#before + this.#at;
  }

  append(bytes: Uint8Array, start: number, end: number): void {
    for (let from = start; from < end;) {
      const count = Math.min(end - from, CHUNK_BYTES - this.#at);
      this.#chunk.set(bytes.subarray(from, from + count), this.#at);
      from += count;
      this.#filled(count);
    }
  }

  fill(length: number, read: (target: Buffer) => void): number {
    const count = Math.min(length, CHUNK_BYTES - this.#at);
    read(this.#chunk.subarray(this.#at, this.#at + count));
    this.#filled(count);
    return count;
  }

  appendTrailer(): void {
    this.flush();
    this.#spill.push(this.#hash.digest());
  }

  /** Yields the complete chunks. */
  *take(): Generator<Buffer, void, undefined> {
    for (let chunk = this.#spill.shift(); chunk !== undefined; chunk = this.#spill.shift()) yield chunk;
  }

  flush(): void {
    if (this.#at === 0) return;
    const bytes = this.#chunk.subarray(0, this.#at);
    this.#hash.update(bytes);
    this.#before += this.#at;
    this.#at = 0;
    this.#spill.push(Buffer.from(bytes));
  }

  #filled(count: number): void {
    this.#at += count;
    if (this.#at === CHUNK_BYTES) this.flush();
  }
}

/** Yields the bytes of a planned pack. @throws {GitStoreError} for a corrupt pack; the reason of the signal */
export async function* packBytes(
  source: PackSource,
  plan: PackPlan,
  signal?: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  const sink = new ChunkSink(createHash(source.format));
  const steps = new PackWriter(source, plan, sink).write();
  for (let step = steps.next(); step.done !== true; step = steps.next()) {
    if (step.value !== undefined) await step.value;
    signal?.throwIfAborted();
    yield* sink.take();
  }
  sink.flush();
  yield* sink.take();
}
