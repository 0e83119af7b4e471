/** Maximum frame, in bytes. A document of 1 MiB can grow sixfold as JSON text. */
export const MAX_FRAME_BYTES = 16 * 1024 * 1024;
const LENGTH_BYTES = 4;

/** A message as it goes over the channel: its length in 4 bytes, little endian, then JSON. */
export function encodeFrame(message: object): Buffer {
  const text = JSON.stringify(message);
  const length = Buffer.byteLength(text);
  const frame = Buffer.allocUnsafe(LENGTH_BYTES + length);
  frame.writeUInt32LE(length, 0);
  frame.write(text, LENGTH_BYTES);
  return frame;
}

/** Takes bytes as they arrive, and returns whole messages. Both ends are this program, so messages are not checked further. */
export class FrameReader<Message> {
  #parts: Buffer[] = [];
  #length = 0;
  /** Bytes of the first frame; undefined until its length is here. */
  #needed: number | undefined;

  /** @throws Error for a frame over {@link MAX_FRAME_BYTES} or text that is not JSON: the channel cannot be used any more */
  push(bytes: Buffer): Message[] {
    this.#parts.push(bytes);
    this.#length += bytes.length;
    const messages: Message[] = [];
    for (;;) {
      this.#needed ??= this.#firstLength();
      if (this.#needed === undefined || this.#length < this.#needed) return messages;
      const all = this.#joined();
      messages.push(JSON.parse(all.toString("utf8", LENGTH_BYTES, this.#needed)) as Message);
      this.#parts = [all.subarray(this.#needed)];
      this.#length -= this.#needed;
      this.#needed = undefined;
    }
  }

  #firstLength(): number | undefined {
    if (this.#length < LENGTH_BYTES) return undefined;
    const length = this.#joined().readUInt32LE(0);
    if (length > MAX_FRAME_BYTES) throw new Error("a message on the channel of the mount is too long");
    return LENGTH_BYTES + length;
  }

  #joined(): Buffer {
    const [first, ...others] = this.#parts;
    if (first !== undefined && others.length === 0) return first;
    const all = Buffer.concat(this.#parts);
    this.#parts = [all];
    return all;
  }
}
