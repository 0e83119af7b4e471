import { ProtocolError } from "./errors.ts";
import { DELIM_PKT, FLUSH_PKT, decodePktLine, encodePktLine, lineText, type PktLine } from "./pkt-line.ts";
import type { ObjectFormat } from "./object-format.ts";
import { finish, type Steps } from "./steps.ts";

/** Maximum requests in one body, so that one body cannot cause too much work. Stock clients send one. */
export const MAX_COMMANDS_PER_BODY = 16;
/** Packets decoded between two pauses. They take less than a millisecond. */
const PACKETS_PER_STEP = 1024;

/**
 * A protocol v2 request (gitprotocol-v2, "Command Request"). Text is Latin-1, one character per byte, without the
 * line feed that may end a line.
 */
export interface CommandRequest {
  /** Name of the command: `ls-refs`, `fetch`, or any other. */
  readonly command: string;
  /** Capabilities such as `agent=…`, `object-format=…`, `server-option=…`, in order. */
  readonly capabilities: readonly string[];
  /** Lines after the delim-pkt, in order. */
  readonly args: readonly string[];
}

/**
 * Content of the body of a `git-upload-pack` POST.
 * - `probe`: the body begins with a flush-pkt. It is not a request: git tests the credential before a large body.
 * - `commands`: one or more requests, each with its encoded bytes (a view of the body).
 */
export type CommandBody =
  | { readonly kind: "probe" }
  | { readonly kind: "commands"; readonly commands: readonly EncodedCommand[] };

/** A request, and its bytes in the body. */
export interface EncodedCommand {
  readonly request: CommandRequest;
  readonly bytes: Buffer;
}

/**
 * Decodes a complete body. A flush-pkt after the last request is accepted and dropped. It ends a session.
 *
 * @throws ProtocolError `truncated`, `bad_length`, `oversized`, `unexpected_packet`, `bad_command`,
 *   `too_many_commands`.
 */
export function decodeCommandBody(body: Buffer): CommandBody {
  return finish(bodySteps(body, "keep"));
}

/**
 * Decodes a complete body as {@link decodeCommandBody} does, but pauses every {@link PACKETS_PER_STEP} packets, so that the
 * caller can let other work run. It does not keep the arguments: each read of `args` decodes them again.
 */
export function decodeCommandBodySteps(body: Buffer): Steps<CommandBody> {
  return bodySteps(body, "again");
}

/** Decodes the request at `offset`. `size` is its length in bytes, including its flush-pkt. Throws the same errors. */
export function decodeCommandRequest(
  body: Buffer,
  offset = 0,
): { readonly request: CommandRequest; readonly size: number } {
  return finish(requestSteps(body, offset, "keep"));
}

/**
 * Beginning of a body that is not complete yet.
 * - `probe`: the body begins with a flush-pkt.
 * - `request`: the command and its capabilities.
 * - `incomplete`: the bytes end before the capabilities do.
 */
export type CommandHead =
  | { readonly kind: "probe" }
  | { readonly kind: "request"; readonly request: Omit<CommandRequest, "args"> }
  | { readonly kind: "incomplete" };

/** Decodes the first request of a body up to its arguments. Throws the same errors, except `truncated`. */
export function decodeCommandHead(bytes: Buffer): CommandHead {
  const lines = new RequestLines(undefined);
  for (let offset = 0; !lines.inArgs && !lines.ended;) {
    const decoding = decodePktLine(bytes, offset);
    if (decoding.state === "error") throw decoding.error;
    if (decoding.state === "incomplete") return { kind: "incomplete" };
    if (offset === 0 && decoding.line.kind === "flush") return { kind: "probe" };
    lines.take(decoding.line, offset);
    offset += decoding.size;
  }
  return { kind: "request", request: lines.request(0) };
}

/** Whether to keep the arguments of a request, or to decode them again for each read. */
type Arguments = "keep" | "again";
type Decoded = { readonly request: CommandRequest; readonly size: number };

function* bodySteps(body: Buffer, args: Arguments): Steps<CommandBody> {
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
    const { request, size } = yield* requestSteps(body, offset, args);
    commands.push({ request, bytes: body.subarray(offset, offset + size) });
    offset += size;
  }
  return { kind: "commands", commands };
}

function* requestSteps(body: Buffer, offset: number, args: Arguments): Steps<Decoded> {
  const lines = new RequestLines(args === "keep" ? [] : undefined);
  let position = offset;
  for (let packets = 1; !lines.ended; packets++) {
    const { line, size } = packetAt(body, position);
    lines.take(line, position);
    position += size;
    if (packets % PACKETS_PER_STEP === 0) yield;
  }
  const request = lines.request(offset);
  const size = position - offset;
  if (args === "keep") return { request, size };
  const { command, capabilities } = request;
  return { request: new RequestOfBytes(command, capabilities, body.subarray(offset, position)), size };
}

/** Collects the lines of one request, packet by packet. */
class RequestLines {
  readonly #args: string[] | undefined;
  readonly #capabilities: string[] = [];
  #command: string | undefined;
  inArgs = false;
  ended = false;

  /** @param args list that gets the arguments. Undefined: the arguments are only checked */
  constructor(args: string[] | undefined) {
    this.#args = args;
  }

  /** @param position position of the packet, for errors */
  take(line: PktLine, position: number): void {
    if (line.kind === "data") {
      if (this.inArgs) {
        this.#args?.push(lineText(line.payload));
        return;
      }
      const text = lineText(line.payload);
      if (!text.startsWith("command=")) this.#capabilities.push(text);
      else if (this.#command === undefined) this.#command = text.slice("command=".length);
      else throw new ProtocolError("bad_command", "request: two commands in one request", position);
    } else if (line.kind === "delim" && !this.inArgs) {
      this.inArgs = true;
    } else if (line.kind === "flush") {
      this.ended = true;
    } else {
      throw new ProtocolError("unexpected_packet", `request: unexpected ${line.kind} packet`, position);
    }
  }

  /** @param offset position of the request, for errors */
  request(offset: number): CommandRequest {
    if (this.#command === undefined || this.#command === "") {
      throw new ProtocolError("bad_command", "request: no command", offset);
    }
    return { command: this.#command, capabilities: this.#capabilities, args: this.#args ?? [] };
  }
}

/** A request that decodes its arguments on each read, because as strings they take more memory than as bytes. */
class RequestOfBytes implements CommandRequest {
  readonly command: string;
  readonly capabilities: readonly string[];
  readonly #bytes: Buffer;

  constructor(command: string, capabilities: readonly string[], bytes: Buffer) {
    this.command = command;
    this.capabilities = capabilities;
    this.#bytes = bytes;
  }

  get args(): readonly string[] {
    return decodeCommandRequest(this.#bytes).request.args;
  }
}

/** Decodes the arguments of a request one by one, in order. @param bytes one well-formed request */
export function* commandArgs({ bytes }: EncodedCommand): Generator<string, void, undefined> {
  let inArgs = false;
  for (let position = 0; ;) {
    const { line, size } = packetAt(bytes, position);
    if (line.kind === "flush") return;
    if (inArgs && line.kind === "data") yield lineText(line.payload);
    inArgs ||= line.kind === "delim";
    position += size;
  }
}

/** Encodes a request. Without arguments, it has no delim-pkt. */
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

/** Object format of a request. The default is SHA-1 (gitprotocol-v2, `object-format`). Undefined: unknown or ambiguous. */
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
