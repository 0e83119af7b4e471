import { createHash, type Hash } from "node:crypto";
import { FetchResponseWalker, OID_BYTES, ProtocolError, type ObjectFormat } from "@devplat/git-protocol";

/** Bytes of a pack's header: signature, version, number of objects (gitformat-pack). */
const PACK_HEADER_BYTES = 12;

/**
 * Checks a `fetch` response on its way: its sections and side-bands, the pack's header, and the hash of the pack's
 * bytes against its trailer. Never throws: a fault only means that the response must not be stored.
 *
 * The trailer is compared with plain SHA-1 (or SHA-256), against damage on the way. The content of the objects is the code
 * host's responsibility, and clients check it again.
 */
export class ResponseCheck {
  readonly #walker: FetchResponseWalker;
  readonly #hash: Hash;
  readonly #hashBytes: number;
  #header: Buffer = Buffer.alloc(0);
  /** The last bytes so far: the trailer, if nothing follows. */
  #held: Buffer = Buffer.alloc(0);
  #packBytes = 0;
  #fault: string | undefined;
  readonly #wantedRefs = new Map<string, string>();

  constructor(format: ObjectFormat) {
    this.#hashBytes = OID_BYTES[format];
    this.#hash = createHash(format);
    this.#walker = new FetchResponseWalker({
      pack: (bytes) => this.#pack(bytes),
      line: (section, text) => {
        if (section !== "wanted-refs") return;
        const space = text.indexOf(" ");
        this.#wantedRefs.set(text.slice(space + 1), text.slice(0, space));
      },
    });
  }

  push(chunk: Buffer): void {
    if (this.#fault !== undefined) return;
    try {
      this.#walker.push(chunk);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#fault = error.message;
    }
  }

  /** Why the response must not be stored, as far as it is known yet. */
  get fault(): string | undefined {
    return this.#fault;
  }

  /** Bytes up to the end of the last whole packet. */
  get boundary(): number {
    return this.#walker.boundary;
  }

  /** Whether an error of this service now belongs on side-band 3, not in an `ERR` packet. */
  get inPackfile(): boolean {
    return this.#walker.inPackfile;
  }

  get packStarted(): boolean {
    return this.#packBytes > 0;
  }

  /** Whether the final flush-pkt came and nothing was wrong so far. */
  get complete(): boolean {
    return this.#fault === undefined && this.#walker.complete;
  }

  /** Ref name to object id, from the section `wanted-refs`. */
  get wantedRefs(): ReadonlyMap<string, string> {
    return this.#wantedRefs;
  }

  /** After the last byte: the fault of the response; undefined if it is complete and its pack is sound. */
  verdict(): string | undefined {
    if (this.#fault !== undefined) return this.#fault;
    if (!this.#walker.complete) return "fetch: the response ends before its flush-pkt";
    if (!this.#walker.sections.has("packfile")) return "fetch: the response has no packfile section";
    if (this.#packBytes < PACK_HEADER_BYTES + this.#hashBytes) return "pack: too short";
    const version = this.#header.readUInt32BE(4);
    if (this.#header.toString("latin1", 0, 4) !== "PACK" || (version !== 2 && version !== 3)) {
      return "pack: no pack header";
    }
    return this.#hash.digest().equals(this.#held) ? undefined : "pack: the trailer does not match";
  }

  #pack(bytes: Buffer): void {
    if (this.#header.length < PACK_HEADER_BYTES) {
      this.#header = Buffer.concat([
        this.#header,
        bytes.subarray(0, PACK_HEADER_BYTES - this.#header.length),
      ]);
    }
    this.#packBytes += bytes.length;
    if (bytes.length >= this.#hashBytes) {
      this.#hash.update(this.#held);
      const end = bytes.length - this.#hashBytes;
      this.#hash.update(bytes.subarray(0, end));
      this.#held = Buffer.from(bytes.subarray(end));
      return;
    }
    const joined = Buffer.concat([this.#held, bytes]);
    const end = Math.max(0, joined.length - this.#hashBytes);
    this.#hash.update(joined.subarray(0, end));
    this.#held = joined.subarray(end);
  }
}
