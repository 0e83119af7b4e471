import { ProtocolError } from "./errors.ts";
import { isAnyOid } from "./object-format.ts";
import { FLUSH_PKT, encodePktLine, lineText } from "./pkt-line.ts";
import { PktLineReader } from "./pkt-line-reader.ts";

/** One line of an `ls-refs` response (gitprotocol-v2, "ls-refs"). */
export interface RefLine {
  /** Object id. Undefined for `unborn`: a symbolic ref to a branch that does not exist yet. */
  readonly oid: string | undefined;
  readonly name: string;
  readonly symrefTarget: string | undefined;
  /** Object that an annotated tag points to, through all tags. */
  readonly peeled: string | undefined;
  /** Unknown attributes, as in the response. */
  readonly unknown: readonly string[];
}

/**
 * Checks the framing of a streamed response. It is complete if it parses up to its flush-pkt and no bytes follow.
 * It works chunk by chunk and keeps no lines.
 */
export class LsRefsFraming {
  readonly #reader: PktLineReader;
  #ended = false;

  constructor(reader = new PktLineReader()) {
    this.#reader = reader;
  }

  /** A framing of the same bytes that goes on by itself. */
  copy(): LsRefsFraming {
    const copy = new LsRefsFraming(this.#reader.copy());
    copy.#ended = this.#ended;
    return copy;
  }

  /** @throws ProtocolError `remote_error` for an `ERR` line, `trailing_data`, or a framing error */
  push(chunk: Buffer): void {
    if (this.#ended && chunk.length > 0) throw trailing();
    this.#reader.push(chunk);
    for (;;) {
      const decoding = this.#reader.next();
      if (decoding.state === "error") throw decoding.error;
      if (decoding.state === "incomplete") return;
      if (decoding.line.kind === "flush") {
        this.#ended = true;
        if (this.#reader.pending > 0) throw trailing();
        return;
      }
      if (decoding.line.kind !== "data") {
        throw new ProtocolError("unexpected_packet", `ls-refs: unexpected ${decoding.line.kind} packet`);
      }
      if (decoding.line.payload.toString("latin1", 0, 4) === "ERR ") {
        throw new ProtocolError("remote_error", "ls-refs: the server reported an error");
      }
    }
  }

  /** Whether the flush-pkt was read. */
  get complete(): boolean {
    return this.#ended;
  }
}

/**
 * Decodes a complete response.
 *
 * @throws ProtocolError `truncated`, `remote_error`, `bad_line`, `trailing_data`, or a framing error
 */
export function decodeLsRefsResponse(body: Buffer): RefLine[] {
  const reader = new PktLineReader();
  reader.push(body);
  const refs: RefLine[] = [];
  for (;;) {
    const decoding = reader.next();
    if (decoding.state === "error") throw decoding.error;
    if (decoding.state === "incomplete") {
      throw new ProtocolError(
        "truncated",
        "ls-refs: the response ends before its flush-pkt",
        reader.consumed,
      );
    }
    if (decoding.line.kind === "flush") break;
    if (decoding.line.kind !== "data") {
      throw new ProtocolError("unexpected_packet", `ls-refs: unexpected ${decoding.line.kind} packet`);
    }
    refs.push(decodeRefLine(lineText(decoding.line.payload)));
  }
  if (reader.pending > 0) throw trailing();
  return refs;
}

/** Decodes one line without its line feed. @throws ProtocolError `remote_error`, `bad_line` */
export function decodeRefLine(text: string): RefLine {
  if (text.startsWith("ERR ")) {
    throw new ProtocolError("remote_error", "ls-refs: the server reported an error");
  }
  const [oid = "", name = "", ...attributes] = text.split(" ");
  if (name === "" || (oid !== "unborn" && !isAnyOid(oid))) {
    throw new ProtocolError("bad_line", "ls-refs: a line is not `<oid> <name>`");
  }
  let symrefTarget: string | undefined;
  let peeled: string | undefined;
  const unknown: string[] = [];
  for (const attribute of attributes) {
    if (attribute.startsWith("symref-target:")) symrefTarget = attribute.slice("symref-target:".length);
    else if (attribute.startsWith("peeled:")) peeled = attribute.slice("peeled:".length);
    else unknown.push(attribute);
  }
  return { oid: oid === "unborn" ? undefined : oid, name, symrefTarget, peeled, unknown };
}

/** Encodes a complete response. */
export function encodeLsRefsResponse(refs: readonly RefLine[]): Buffer {
  const lines = refs.map((ref) => {
    const words = [ref.oid ?? "unborn", ref.name];
    if (ref.symrefTarget !== undefined) words.push(`symref-target:${ref.symrefTarget}`);
    if (ref.peeled !== undefined) words.push(`peeled:${ref.peeled}`);
    words.push(...ref.unknown);
    return encodePktLine(`${words.join(" ")}\n`);
  });
  return Buffer.concat([...lines, FLUSH_PKT]);
}

function trailing(): ProtocolError {
  return new ProtocolError("trailing_data", "ls-refs: bytes follow the flush-pkt of the response");
}
