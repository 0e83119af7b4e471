import { ProtocolError } from "./errors.ts";
import { FLUSH_PKT, encodePktLine } from "./pkt-line.ts";
import { nextLine, PktLineReader } from "./pkt-line-reader.ts";

/** A v2 capability advertisement, the response to `info/refs` (gitprotocol-v2, "Capability Advertisement"). */
export interface CapabilityAdvertisement {
  /** Service in the first line of smart HTTP (gitprotocol-http, "Smart Server Response"). Undefined: no such line. */
  readonly service: string | undefined;
  /** Names and values, in order. Undefined: the capability has no value. */
  readonly capabilities: ReadonlyMap<string, string | undefined>;
}

/**
 * Decodes a complete advertisement.
 *
 * @throws ProtocolError `bad_line` if it is not for protocol v2, `truncated`, or a framing error.
 */
export function decodeCapabilityAdvertisement(body: Buffer): CapabilityAdvertisement {
  const reader = new PktLineReader();
  reader.push(body);
  let service: string | undefined;
  let first = nextLine(reader, "advertisement");
  if (first?.startsWith("# service=") === true) {
    service = first.slice("# service=".length);
    if (nextLine(reader, "advertisement") !== undefined) {
      throw new ProtocolError("unexpected_packet", "advertisement: no flush-pkt after the service line");
    }
    first = nextLine(reader, "advertisement");
  }
  if (first !== "version 2") throw new ProtocolError("bad_line", "advertisement: not protocol version 2");
  const capabilities = new Map<string, string | undefined>();
  for (
    let line = nextLine(reader, "advertisement");
    line !== undefined;
    line = nextLine(reader, "advertisement")
  ) {
    const equals = line.indexOf("=");
    if (equals < 0) capabilities.set(line, undefined);
    else capabilities.set(line.slice(0, equals), line.slice(equals + 1));
  }
  return { service, capabilities };
}

/** Encodes an advertisement. */
export function encodeCapabilityAdvertisement(advertisement: CapabilityAdvertisement): Buffer {
  const lines: Buffer[] = [];
  if (advertisement.service !== undefined) {
    lines.push(encodePktLine(`# service=${advertisement.service}\n`), FLUSH_PKT);
  }
  lines.push(encodePktLine("version 2\n"));
  for (const [name, value] of advertisement.capabilities) {
    lines.push(encodePktLine(value === undefined ? `${name}\n` : `${name}=${value}\n`));
  }
  return Buffer.concat([...lines, FLUSH_PKT]);
}
