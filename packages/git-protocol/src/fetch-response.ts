import { ProtocolError } from "./errors.ts";
import {
  DELIM_PKT,
  FLUSH_PKT,
  PKT_LENGTH_BYTES,
  decodePktLength,
  encodePktLine,
  lineText,
} from "./pkt-line.ts";
import { SIDE_BAND, sideBandChannel } from "./side-band.ts";

/** Sections of a `fetch` response (gitprotocol-v2, "fetch"), in the order of the protocol. */
export const FETCH_SECTIONS = [
  "acknowledgments",
  "shallow-info",
  "wanted-refs",
  "packfile-uris",
  "packfile",
] as const;
/** Name of a section of a `fetch` response. */
export type FetchSection = (typeof FETCH_SECTIONS)[number];

/** Callbacks of {@link FetchResponseWalker}, all optional. Buffers are views: copy them to keep them. */
export interface FetchResponseEvents {
  section?(name: FetchSection): void;
  /** A line of a section other than `packfile`, without its line feed. */
  line?(section: FetchSection, text: string): void;
  /** Bytes of the pack, in order, cut anywhere. */
  pack?(bytes: Buffer): void;
}

/**
 * Parses a `fetch` response without `sideband-all`, chunk by chunk. It does not hold back or copy pack bytes.
 *
 * `complete` becomes true at the final flush-pkt. `boundary` is the number of bytes up to the end of the last complete
 * packet, where the caller could insert an error packet.
 *
 * `push` throws ProtocolError: `remote_error` (an `ERR` line, or side-band 3), `bad_side_band`, `bad_line` (unknown
 * section), `unexpected_packet`, `trailing_data`, or a framing error. After an error, call no more methods.
 */
export class FetchResponseWalker {
  readonly #events: FetchResponseEvents;
  readonly #header = Buffer.alloc(PKT_LENGTH_BYTES);
  #headerFill = 0;
  /** Missing bytes of the current packet's payload. */
  #remaining = 0;
  #atPayloadStart = false;
  #channel = 0;
  #line: Buffer[] = [];
  #section: FetchSection | undefined;
  #sectionsSeen = new Set<FetchSection>();
  #position = 0;
  #boundary = 0;
  #ended = false;

  constructor(events: FetchResponseEvents = {}) {
    this.#events = events;
  }

  get complete(): boolean {
    return this.#ended;
  }

  get boundary(): number {
    return this.#boundary;
  }

  /** Sections that have begun. */
  get sections(): ReadonlySet<FetchSection> {
    return this.#sectionsSeen;
  }

  /** Whether the packfile section has begun and the response has not ended. An error must then use side-band 3. */
  get inPackfile(): boolean {
    return this.#section === "packfile" && !this.#ended;
  }

  push(chunk: Buffer): void {
    let offset = 0;
    while (offset < chunk.length) {
      if (this.#ended) {
        throw new ProtocolError(
          "trailing_data",
          "fetch: bytes follow the flush-pkt of the response",
          this.#position,
        );
      }
      const taken = this.#remaining > 0 ? this.#payload(chunk, offset) : this.#length(chunk, offset);
      offset += taken;
      this.#position += taken;
      if (this.#remaining === 0 && this.#headerFill === 0) this.#boundary = this.#position;
    }
  }

  #length(chunk: Buffer, offset: number): number {
    const taken = Math.min(PKT_LENGTH_BYTES - this.#headerFill, chunk.length - offset);
    chunk.copy(this.#header, this.#headerFill, offset, offset + taken);
    this.#headerFill += taken;
    if (this.#headerFill < PKT_LENGTH_BYTES) return taken;
    this.#headerFill = 0;
    const size = decodePktLength(this.#header);
    if (size instanceof ProtocolError) throw new ProtocolError(size.code, size.message, this.#position);
    if (size === 0) {
      this.#ended = true;
    } else if (size === 1) {
      if (this.#section === undefined || this.#section === "packfile") {
        throw new ProtocolError("unexpected_packet", "fetch: unexpected delim packet", this.#position);
      }
      this.#section = undefined;
    } else if (size === 2) {
      throw new ProtocolError("unexpected_packet", "fetch: unexpected response-end packet", this.#position);
    } else if (size === PKT_LENGTH_BYTES) {
      if (this.#section === "packfile") sideBandChannel(undefined);
      else this.#lineEnd(Buffer.alloc(0));
    } else {
      this.#remaining = size - PKT_LENGTH_BYTES;
      this.#atPayloadStart = true;
    }
    return taken;
  }

  #payload(chunk: Buffer, offset: number): number {
    const taken = Math.min(this.#remaining, chunk.length - offset);
    let bytes = chunk.subarray(offset, offset + taken);
    this.#remaining -= taken;
    if (this.#section !== "packfile") {
      this.#line.push(bytes);
      if (this.#remaining === 0) {
        const line = this.#line.length === 1 ? bytes : Buffer.concat(this.#line);
        this.#line = [];
        this.#lineEnd(line);
      }
      return taken;
    }
    if (this.#atPayloadStart) {
      this.#atPayloadStart = false;
      this.#channel = sideBandChannel(bytes[0]);
      bytes = bytes.subarray(1);
      if (this.#channel === SIDE_BAND.error) {
        throw new ProtocolError("remote_error", "fetch: the server reported an error on side-band 3");
      }
    }
    if (this.#channel === SIDE_BAND.pack && bytes.length > 0) this.#events.pack?.(bytes);
    return taken;
  }

  #lineEnd(payload: Buffer): void {
    const text = lineText(payload);
    if (text.startsWith("ERR ")) {
      throw new ProtocolError("remote_error", "fetch: the server reported an error");
    }
    if (this.#section !== undefined) {
      this.#events.line?.(this.#section, text);
      return;
    }
    const section = FETCH_SECTIONS.find((name) => name === text);
    if (section === undefined || this.#sectionsSeen.has(section)) {
      throw new ProtocolError("bad_line", "fetch: the response has an unknown or repeated section");
    }
    this.#section = section;
    this.#sectionsSeen.add(section);
    this.#events.section?.(section);
  }
}

/** One section of a response: its lines, or for `packfile` its encoded side-band packets (see side-band.ts). */
export type FetchResponseSection =
  | { readonly name: Exclude<FetchSection, "packfile">; readonly lines: readonly string[] }
  | { readonly name: "packfile"; readonly packets: Buffer };

/** Encodes a complete response. */
export function encodeFetchResponse(sections: readonly FetchResponseSection[]): Buffer {
  const parts: Buffer[] = [];
  for (const [index, section] of sections.entries()) {
    if (index > 0) parts.push(DELIM_PKT);
    parts.push(encodePktLine(`${section.name}\n`));
    if (section.name === "packfile") parts.push(section.packets);
    else for (const line of section.lines) parts.push(encodePktLine(`${line}\n`));
  }
  return Buffer.concat([...parts, FLUSH_PKT]);
}
