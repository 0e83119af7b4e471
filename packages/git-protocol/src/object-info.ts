import { isOid, type ObjectFormat } from "./object-format.ts";
import { FLUSH_PKT, encodePktLine } from "./pkt-line.ts";

/** A request for sizes of objects (gitprotocol-v2, "object-info"). */
export interface ObjectInfoRequest {
  readonly oids: readonly string[];
}

/**
 * Decodes the arguments of `object-info`.
 *
 * @returns undefined for arguments that are not known here, and without `size` or an object
 */
export function decodeObjectInfoRequest(
  args: Iterable<string>,
  format: ObjectFormat,
): ObjectInfoRequest | undefined {
  const oids: string[] = [];
  let size = false;
  for (const line of args) {
    const oid = line.startsWith("oid ") ? line.slice("oid ".length) : undefined;
    if (line === "size") size = true;
    else if (oid !== undefined && isOid(oid, format)) oids.push(oid);
    else return undefined;
  }
  return size && oids.length > 0 ? { oids } : undefined;
}

/** Encodes the response to a request for sizes. Like git, its lines have no line feed. */
export function encodeObjectSizes(oids: readonly string[], sizes: readonly number[]): Buffer {
  return Buffer.concat([
    encodePktLine("size"),
    ...oids.map((oid, at) => encodePktLine(`${oid} ${sizes[at] ?? ""}`)),
    FLUSH_PKT,
  ]);
}
