import { ProtocolError } from "./errors.ts";
import { DELIM_PKT, FLUSH_PKT, decodePktLine, encodePktLine, lineText } from "./pkt-line.ts";
import type { ObjectFormat } from "./object-format.ts";

/** Requests in one body at most. Stock clients send one; the limit bounds what one body can set off. */
export const MAX_COMMANDS_PER_BODY = 16;

/**
 * A protocol v2 request (gitprotocol-v2, "Command Request"). Text is Latin-1, one character per byte, without the
 * line feed that may end a line.
 */
export interface CommandRequest {
  /** `ls-refs`, `fetch`, or any other. */
  readonly command: string;
  /** `agent=…`, `object-format=…`, `server-option=…`, in order. */
  readonly capabilities: readonly string[];
  /** The lines after the delim-pkt, in order. */
  readonly args: readonly string[];
}

/**
 * What the body of a `git-upload-pack` POST holds.
 * - `probe`: it begins with a flush-pkt: no request, git's test of the credential before a large body.
 * - `commands`: one or more requests, each with the bytes that it came as (a view of the body).
 */
export type CommandBody =
  | { readonly kind: "probe" }
  | { readonly kind: "commands"; readonly commands: readonly EncodedCommand[] };

export interface EncodedCommand {
  readonly request: CommandRequest;
  readonly bytes: Buffer;
}

/**
 * Decodes a whole body. A flush-pkt after the last request is accepted and dropped (it ends a session).
 *
 * @throws ProtocolError `truncated`, `bad_length`, `oversized`, `unexpected_packet`, `bad_command`,
 *   `too_many_commands`.
 */
export function decodeCommandBody(body: Buffer): CommandBody {
  const commands: EncodedCommand[] = [];
  let offset = 0;
  while (offset < body.length || commands.length === 0) {
    const first = packetAt(body, offset);
    if (first.line.kind === "flush") {
      if (commands.length === 0) return { kind: "probe" };
      offset += first.size;
      if (offset < body.length) {
        throw new ProtocolError("unexpected_packet", "request: bytes follow the final flush-pkt", offset);
      }
      break;
    }
    if (commands.length === MAX_COMMANDS_PER_BODY) {
      throw new ProtocolError("too_many_commands", `request: more than ${MAX_COMMANDS_PER_BODY} commands`);
    }
    const { request, size } = decodeCommandRequest(body, offset);
    commands.push({ request, bytes: body.subarray(offset, offset + size) });
    offset += size;
  }
  return { kind: "commands", commands };
}

/** Decodes one request at `offset`; `size` is what it took, its flush-pkt included. Errors as above. */
export function decodeCommandRequest(
  body: Buffer,
  offset = 0,
): { readonly request: CommandRequest; readonly size: number } {
  let command: string | undefined;
  const capabilities: string[] = [];
  const args: string[] = [];
  let inArgs = false;
  let position = offset;
  for (;;) {
    const { line, size } = packetAt(body, position);
    if (line.kind === "data") {
      const text = lineText(line.payload);
      if (inArgs) args.push(text);
      else if (!text.startsWith("command=")) capabilities.push(text);
      else if (command === undefined) command = text.slice("command=".length);
      else throw new ProtocolError("bad_command", "request: two commands in one request", position);
    } else if (line.kind === "delim" && !inArgs) {
      inArgs = true;
    } else if (line.kind === "flush") {
      position += size;
      break;
    } else {
      throw new ProtocolError("unexpected_packet", `request: a ${line.kind} packet stands here`, position);
    }
    position += size;
  }
  if (command === undefined || command === "") {
    throw new ProtocolError("bad_command", "request: no command", offset);
  }
  return { request: { command, capabilities, args }, size: position - offset };
}

/** Encodes a request; without arguments there is no delim-pkt. */
export function encodeCommandRequest(request: CommandRequest): Buffer {
  const lines = [request.command].map((command) => encodePktLine(`command=${command}\n`));
  for (const capability of request.capabilities) lines.push(encodePktLine(`${capability}\n`));
  if (request.args.length > 0) {
    lines.push(DELIM_PKT);
    for (const arg of request.args) lines.push(encodePktLine(`${arg}\n`));
  }
  lines.push(FLUSH_PKT);
  return Buffer.concat(lines);
}

/** The object format that a request names; SHA-1 where it names none (gitprotocol-v2, `object-format`). */
export function requestObjectFormat(request: CommandRequest): ObjectFormat | undefined {
  const named = request.capabilities.filter((capability) => capability.startsWith("object-format="));
  if (named.every((capability) => capability === "object-format=sha1")) return "sha1";
  if (named.every((capability) => capability === "object-format=sha256")) return "sha256";
  return undefined;
}

function packetAt(
  body: Buffer,
  offset: number,
): Extract<ReturnType<typeof decodePktLine>, { state: "complete" }> {
  const decoding = decodePktLine(body, offset);
  if (decoding.state === "error") throw decoding.error;
  if (decoding.state === "incomplete") {
    throw new ProtocolError("truncated", "request: the body ends before its flush-pkt", offset);
  }
  return decoding;
}
