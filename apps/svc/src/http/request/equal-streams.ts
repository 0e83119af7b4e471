/** Bytes that a stretch has room for at first. It is doubled when it is full. */
const FIRST_BYTES = 64 * 1024;

/** Bytes from the beginning of a stream, for all streams that have begun with them. */
interface Stretch<State> {
  readonly name: string;
  /** Its first `size` bytes never change. */
  bytes: Buffer;
  size: number;
  /** State that follows from exactly these bytes. */
  state: State;
  /** The view of them that is handed out. */
  view: Buffer | undefined;
  streams: number;
}

/**
 * Streams that arrive at the same time and mostly hold the same bytes, as the requests and refs of forty clones of one
 * repository. As long as the bytes of a stream are those of another one, they are kept once.
 *
 * Every byte is compared, so a name need not be exact, and no stream ever gets the bytes of another.
 */
export class EqualStreams<State> {
  readonly #stateOf: (bytes: Buffer) => State;
  /** The latest stretch for each name; only those that a stream has. */
  readonly #stretches = new Map<string, Stretch<State>>();

  /** @param stateOf what follows from the first bytes of a stream. It is kept with them. Must not throw for bytes that {@link EqualStream.append} was given */
  constructor(stateOf: (bytes: Buffer) => State) {
    this.#stateOf = stateOf;
  }

  /** Begins a stream. It must leave. @param name streams with the same name are compared */
  begin(name: string): EqualStream<State> {
    let stretch = this.#stretches.get(name);
    if (stretch === undefined) {
      const bytes = Buffer.alloc(0);
      stretch = { name, bytes, size: 0, state: this.#stateOf(bytes), view: bytes, streams: 0 };
      this.#stretches.set(name, stretch);
    }
    stretch.streams++;
    return new EqualStream(stretch, (change) => this.#move(change));
  }

  /** Names whose bytes are kept. */
  get names(): number {
    return this.#stretches.size;
  }

  /** Leaves a stretch. @returns one for these bytes, if there are any */
  #move({ from, bytes }: Move<State>): Stretch<State> | undefined {
    const { name } = from;
    from.streams--;
    if (from.streams === 0 && this.#stretches.get(name) === from) this.#stretches.delete(name);
    if (bytes === undefined) return undefined;
    const { length: size } = bytes;
    const own = {
      name,
      bytes: Buffer.from(bytes),
      size,
      state: this.#stateOf(bytes),
      view: undefined,
      streams: 1,
    };
    // Those that begin later are rather like the latest one.
    this.#stretches.set(name, own);
    return own;
  }
}

interface Move<State> {
  readonly from: Stretch<State>;
  readonly bytes: Buffer | undefined;
}

/** One stream of {@link EqualStreams}. Its owner calls {@link match} with each chunk, then {@link append} with the rest. */
export class EqualStream<State> {
  readonly #move: (move: Move<State>) => Stretch<State> | undefined;
  #stretch: Stretch<State> | undefined;
  /** Bytes of this stream so far. */
  #size = 0;

  /** By {@link EqualStreams.begin}. */
  constructor(stretch: Stretch<State>, move: (move: Move<State>) => Stretch<State> | undefined) {
    this.#stretch = stretch;
    this.#move = move;
  }

  get size(): number {
    return this.#size;
  }

  /** Takes the part of a chunk that another stream had before. @returns the rest, which must be appended */
  match(chunk: Buffer): Buffer {
    const { bytes, size } = this.#joined();
    const length = Math.min(chunk.length, size - this.#size);
    const isEqual = length === 0 || bytes.compare(chunk, 0, length, this.#size, this.#size + length) === 0;
    if (isEqual) {
      this.#size += length;
      return chunk.subarray(length);
    }
    this.#stretch = this.#move({ from: this.#joined(), bytes: bytes.subarray(0, this.#size) });
    return chunk;
  }

  /** Adds bytes that {@link match} gave back. @param state what follows from all bytes of the stream now */
  append(rest: Buffer, state: State): void {
    if (rest.length === 0) return;
    const stretch = this.#joined();
    const size = stretch.size + rest.length;
    if (size > stretch.bytes.length) {
      const bytes = Buffer.allocUnsafeSlow(Math.max(FIRST_BYTES, 2 ** Math.ceil(Math.log2(size))));
      stretch.bytes.copy(bytes, 0, 0, stretch.size);
      stretch.bytes = bytes;
    }
    rest.copy(stretch.bytes, stretch.size);
    stretch.size = size;
    stretch.state = state;
    stretch.view = undefined;
    this.#size = size;
  }

  /** State that follows from the bytes so far; undefined if another stream has more of them. */
  get state(): State | undefined {
    const { size, state } = this.#joined();
    return size === this.#size ? state : undefined;
  }

  /** All bytes so far. Streams with equal bytes get the same buffer, which nobody may write to. */
  get bytes(): Buffer {
    const stretch = this.#joined();
    if (stretch.size !== this.#size) return stretch.bytes.subarray(0, this.#size);
    return (stretch.view ??= stretch.bytes.subarray(0, stretch.size));
  }

  /** Ends it; the bytes that were handed out stay. Calling it again does nothing. */
  leave(): void {
    if (this.#stretch !== undefined) this.#move({ from: this.#stretch, bytes: undefined });
    this.#stretch = undefined;
  }

  #joined(): Stretch<State> {
    if (this.#stretch === undefined) throw new TypeError("the stream was left");
    return this.#stretch;
  }
}
