import { ProtocolError } from "../errors.ts";
import { isAnyOid, type ObjectFormat } from "../object-format.ts";
import { encodePktLine, FLUSH_PKT, lineText } from "../pkt-line.ts";
import { PktLineReader } from "../pkt-line-reader.ts";
import { decodePushCertificate } from "./push-certificate.ts";
import { decodeRefCommand, encodeRefCommand, type RefCommand } from "./ref-command.ts";

export type { RefCommand } from "./ref-command.ts";

/**
 * A request to `git-receive-pack`, without its pack (gitprotocol-pack, "Reference Update Request and Packfile Transfer").
 * Text is Latin-1, one character per byte. A request without commands is a probe.
 */
export interface ReceivePackRequest {
  readonly commands: readonly RefCommand[];
  /** Capabilities such as `report-status`, `atomic`, `agent=…`, in order. */
  readonly capabilities: readonly string[];
  /** Commits whose parents the client lacks. */
  readonly shallows: readonly string[];
  readonly pushOptions: readonly string[];
  /** Text of a push certificate with its signature. It contains the commands. See `decodePushCertificate`. */
  readonly certificate: Buffer | undefined;
}

/** Options of {@link ReceivePackRequestDecoder}. */
export interface RequestDecoderOptions {
  /** Maximum bytes in front of the pack. Default 16 MiB: more than 100,000 commands. */
  readonly maxBytes?: number;
}

const DEFAULT_MAX_BYTES = 16 * 2 ** 20;

type State = "commands" | "certificate" | "push-options" | "complete";

/**
 * Reads a request chunk by chunk, up to the pack.
 *
 * @example
 * const decoder = new ReceivePackRequestDecoder();
 * for await (const chunk of body) if (decoder.push(chunk)) break;
 * const { request, rest } = decoder.end();
 */
export class ReceivePackRequestDecoder {
  readonly #maxBytes: number;
  readonly #reader = new PktLineReader();
  readonly #commands: RefCommand[] = [];
  readonly #shallows: string[] = [];
  readonly #pushOptions: string[] = [];
  readonly #certificate: Buffer[] = [];
  #capabilities: readonly string[] | undefined;
  #certified: Buffer | undefined;
  #state: State = "commands";

  constructor(options: RequestDecoderOptions = {}) {
    this.#maxBytes = options.maxBytes ?? DEFAULT_MAX_BYTES;
  }

  /**
   * Reads bytes of the body.
   *
   * @returns whether the request is complete. The bytes after it are the beginning of the pack
   * @throws ProtocolError `bad_line`, `unexpected_packet`, `bad_command` for commands besides those of a certificate, `oversized`
   *   for more than the maximum, and the errors of framing
   */
  push(chunk: Uint8Array): boolean {
    this.#reader.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length));
    while (this.#state !== "complete") {
      const decoding = this.#reader.next();
      if (decoding.state === "error") throw decoding.error;
      if (decoding.state === "incomplete") break;
      if (this.#reader.consumed > this.#maxBytes) {
        throw new ProtocolError("oversized", `push: more than ${this.#maxBytes} bytes in front of the pack`);
      }
      if (decoding.line.kind === "flush") this.#flush();
      else if (decoding.line.kind === "data") this.#take(decoding.line.payload);
      else throw new ProtocolError("unexpected_packet", `push: unexpected ${decoding.line.kind} packet`);
    }
    return this.#state === "complete";
  }

  /**
   * Returns the request, and the bytes after it that were pushed.
   *
   * @throws ProtocolError `truncated` if it is not complete
   */
  end(): { readonly request: ReceivePackRequest; readonly rest: Buffer } {
    if (this.#state !== "complete") {
      throw new ProtocolError("truncated", "push: the request ends before its pack", this.#reader.consumed);
    }
    const request = {
      commands: this.#commands,
      capabilities: this.#capabilities ?? [],
      shallows: this.#shallows,
      pushOptions: this.#pushOptions,
      certificate: this.#certified,
    };
    return { request, rest: this.#reader.rest() };
  }

  #take(payload: Buffer): void {
    if (this.#state === "push-options") this.#pushOptions.push(lineText(payload));
    else if (this.#state === "certificate") this.#takeCertificate(payload);
    else this.#takeCommand(payload);
  }

  #takeCommand(payload: Buffer): void {
    const text = lineText(payload);
    if (text.startsWith("shallow ")) {
      const oid = text.slice("shallow ".length);
      if (!isAnyOid(oid)) throw new ProtocolError("bad_line", "push: a shallow line has no object id");
      this.#shallows.push(oid);
      return;
    }
    const nul = text.indexOf("\0");
    const line = nul < 0 ? text : text.slice(0, nul);
    if (nul >= 0) {
      if (this.#capabilities !== undefined) {
        throw new ProtocolError("bad_line", "push: capabilities on a second line");
      }
      this.#capabilities = text
        .slice(nul + 1)
        .split(" ")
        .filter((capability) => capability !== "");
    }
    if (line === "push-cert") {
      if (this.#certified !== undefined) throw new ProtocolError("bad_command", "push: two certificates");
      this.#state = "certificate";
      return;
    }
    this.#commands.push(decodeRefCommand(line));
    this.#checkOneSource();
  }

  #takeCertificate(payload: Buffer): void {
    if (lineText(payload) !== "push-cert-end") {
      this.#certificate.push(payload);
      return;
    }
    this.#state = "commands";
    this.#certified = Buffer.concat(this.#certificate);
    this.#checkOneSource();
  }

  #checkOneSource(): void {
    if (this.#certified !== undefined && this.#commands.length > 0) {
      throw new ProtocolError("bad_command", "push: commands besides those of the certificate");
    }
  }

  #flush(): void {
    if (this.#state === "certificate") {
      throw new ProtocolError("unexpected_packet", "push: unexpected flush packet");
    }
    if (this.#certified !== undefined && this.#state === "commands") {
      this.#commands.push(...decodePushCertificate(this.#certified).commands);
    }
    const hasOptions =
      this.#state === "commands" &&
      this.#commands.length > 0 &&
      this.#capabilities?.includes("push-options") === true;
    this.#state = hasOptions ? "push-options" : "complete";
  }
}

/** Whether a request has this capability, with or without a value. */
export function hasCapability(
  { capabilities }: Pick<ReceivePackRequest, "capabilities">,
  name: string,
): boolean {
  return capabilities.some((each) => each === name || each.startsWith(`${name}=`));
}

/** Encodes a request. The pack follows it, unless all commands delete. Push options need the capability `push-options`. */
export function encodeReceivePackRequest(request: ReceivePackRequest, format: ObjectFormat): Buffer {
  const { commands, capabilities, shallows, pushOptions, certificate } = request;
  const packets = shallows.map((oid) => encodePktLine(`shallow ${oid}`));
  const suffix = `\0${capabilities.map((each) => ` ${each}`).join("")}`;
  if (certificate === undefined) {
    for (const [at, command] of commands.entries()) {
      packets.push(encodePktLine(encodeRefCommand(command, format) + (at === 0 ? suffix : "")));
    }
  } else {
    packets.push(encodePktLine(`push-cert${suffix}\n`));
    const lines = certificate.toString("latin1").match(/[^\n]*\n|[^\n]+$/g) ?? [];
    for (const line of lines) packets.push(encodePktLine(line));
    packets.push(encodePktLine("push-cert-end\n"));
  }
  packets.push(FLUSH_PKT);
  if (capabilities.includes("push-options") && commands.length > 0) {
    for (const option of pushOptions) packets.push(encodePktLine(option));
    packets.push(FLUSH_PKT);
  }
  return Buffer.concat(packets);
}
