import { LsRefsFraming, ProtocolError } from "@devplat/git-protocol";
import { EqualStreams, type EqualStream } from "../http/request/equal-streams.ts";
import { MAX_REFS_BYTES } from "./ref-snapshots.ts";

/** Bodies of `ls-refs` responses that arrive at the same time. Those of one repository are mostly equal, and kept once. */
export class LsRefsBodies {
  readonly #streams = new EqualStreams((bytes) => {
    const framing = new LsRefsFraming();
    framing.push(bytes);
    return framing;
  });

  /** Begins a body, which must leave. @param name names the request, so that its responses are compared */
  begin(name: string): LsRefsBody {
    return new LsRefsBody(this.#streams.begin(name));
  }
}

/**
 * Checks that the body of an `ls-refs` response is whole, and keeps its bytes up to {@link MAX_REFS_BYTES}. Bytes that
 * another body had before are compared with it and not parsed again: equal bytes have the same framing.
 */
export class LsRefsBody {
  readonly #stream: EqualStream<LsRefsFraming>;
  /** Framing of a body that is too long to be kept. */
  #ownFraming: LsRefsFraming | undefined;
  #isForeign = false;

  constructor(stream: EqualStream<LsRefsFraming>) {
    this.#stream = stream;
  }

  push(chunk: Buffer): void {
    if (this.#isForeign) return;
    try {
      this.#push(chunk);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#isForeign = true;
    }
  }

  /** After the last chunk: whether the body parses to its flush-pkt, without `ERR` and with nothing after it. */
  get isWhole(): boolean {
    if (this.#isForeign) return false;
    // If another body has more bytes, the flush-pkt is not among those of this one: nothing follows it.
    return (this.#ownFraming ?? this.#stream.state)?.complete === true;
  }

  /** The body; undefined if it is too long to be kept. Bodies with equal bytes give the same buffer. */
  get bytes(): Buffer | undefined {
    return this.#ownFraming === undefined ? this.#stream.bytes : undefined;
  }

  /** Ends it. Calling it again does nothing. */
  leave(): void {
    this.#stream.leave();
  }

  #push(chunk: Buffer): void {
    if (this.#ownFraming !== undefined) {
      this.#ownFraming.push(chunk);
      return;
    }
    const rest = this.#stream.match(chunk);
    if (rest.length === 0) return;
    // A copy: bytes that are not those of an `ls-refs` response are not added to those that others share.
    const framing = this.#stream.state!.copy();
    framing.push(rest);
    if (this.#stream.size + rest.length <= MAX_REFS_BYTES) this.#stream.append(rest, framing);
    else {
      this.#ownFraming = framing;
      this.#stream.leave();
    }
  }
}
