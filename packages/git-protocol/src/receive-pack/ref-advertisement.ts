import { ProtocolError } from "../errors.ts";
import { isAnyOid, type ObjectFormat } from "../object-format.ts";
import { encodePktLine, FLUSH_PKT } from "../pkt-line.ts";
import { nextLine, PktLineReader } from "../pkt-line-reader.ts";
import { zeroOid } from "./ref-command.ts";

/** A ref in an advertisement. The name of the target of an annotated tag ends with `^{}`. */
export interface AdvertisedRef {
  readonly name: string;
  readonly oid: string;
}

/**
 * An advertisement of refs in protocol v0 and v1 (gitprotocol-pack, "Reference Discovery"), the response to `info/refs`. Pushes have no
 * other one. Text is Latin-1.
 */
export interface RefAdvertisement {
  /** Service in the first line of smart HTTP (gitprotocol-http, "Smart Server Response"). Undefined: no such line. */
  readonly service: string | undefined;
  /** In the order of the lines. */
  readonly refs: readonly AdvertisedRef[];
  /** Capabilities such as `atomic`, `symref=HEAD:refs/heads/main`, in order. */
  readonly capabilities: readonly string[];
  /** Commits whose parents the server lacks. */
  readonly shallows: readonly string[];
}

const NO_REFS = "capabilities^{}";

/** Encodes an advertisement of protocol v0. */
export function encodeRefAdvertisement(advertisement: RefAdvertisement, format: ObjectFormat): Buffer {
  const { service, refs, capabilities, shallows } = advertisement;
  const packets = service === undefined ? [] : [encodePktLine(`# service=${service}\n`), FLUSH_PKT];
  const listed = refs.length === 0 ? [{ oid: zeroOid(format), name: NO_REFS }] : refs;
  for (const [at, { oid, name }] of listed.entries()) {
    packets.push(encodePktLine(`${oid} ${name}${at === 0 ? `\0${capabilities.join(" ")}` : ""}\n`));
  }
  packets.push(...shallows.map((oid) => encodePktLine(`shallow ${oid}\n`)), FLUSH_PKT);
  return Buffer.concat(packets);
}

/**
 * Decodes a complete advertisement of protocol v0 or v1.
 *
 * @throws ProtocolError `bad_line`, `truncated`, `unexpected_packet`, `trailing_data`, `remote_error`, or a framing error
 */
export function decodeRefAdvertisement(body: Buffer): RefAdvertisement {
  const reader = new PktLineReader();
  reader.push(body);
  let service: string | undefined;
  let line = nextLine(reader, "advertisement");
  if (line?.startsWith("# service=") === true) {
    service = line.slice("# service=".length);
    if (nextLine(reader, "advertisement") !== undefined) {
      throw new ProtocolError("unexpected_packet", "advertisement: no flush-pkt after the service line");
    }
    line = nextLine(reader, "advertisement");
  }
  if (line === "version 1") line = nextLine(reader, "advertisement");
  const refs: AdvertisedRef[] = [];
  const shallows: string[] = [];
  let capabilities: readonly string[] | undefined;
  for (; line !== undefined; line = nextLine(reader, "advertisement")) {
    const nul = line.indexOf("\0");
    const text = nul < 0 ? line : line.slice(0, nul);
    if (capabilities === undefined) {
      capabilities =
        nul < 0
          ? []
          : line
              .slice(nul + 1)
              .split(" ")
              .filter((each) => each !== "");
    } else if (nul >= 0) {
      throw badLine("capabilities on a second line");
    }
    const space = text.indexOf(" ");
    const [first, second] = [text.slice(0, Math.max(space, 0)), text.slice(space + 1)];
    if (first === "shallow" && isAnyOid(second)) shallows.push(second);
    else if (first === "ERR")
      throw new ProtocolError("remote_error", "advertisement: the server reported an error");
    else if (!isAnyOid(first) || second === "") throw badLine("a line is not `<oid> <name>`");
    else if (second !== NO_REFS) refs.push({ oid: first, name: second });
  }
  if (reader.pending > 0) {
    throw new ProtocolError("trailing_data", "advertisement: bytes follow the flush-pkt");
  }
  return { service, refs, capabilities: capabilities ?? [], shallows };
}

function badLine(found: string): ProtocolError {
  return new ProtocolError("bad_line", `advertisement: ${found}`);
}
