import { PKT_LENGTH_BYTES } from "@devplat/git-protocol";
import { readAt } from "../cache/responses/file-io.ts";

const LENGTH = /^[0-9a-f]{4}$/;

/**
 * Finds out how many bytes are missing to the end of a packet, by the lengths of the packets before it (gitprotocol-common,
 * "pkt-line Format").
 *
 * @param boundary offset in the file where a packet begins
 * @param sent offset up to which the file was sent
 * @returns undefined: the file has no packets there
 */
export async function bytesToPacketEnd(
  descriptor: number,
  boundary: number,
  sent: number,
): Promise<number | undefined> {
  const header = Buffer.alloc(PKT_LENGTH_BYTES);
  let at = boundary;
  while (at < sent) {
    const count = await readAt(descriptor, header, header.length, at).catch(() => 0);
    const text = header.toString("latin1");
    if (count < header.length || !LENGTH.test(text)) return undefined;
    // A flush-pkt, delim-pkt or response-end-pkt is its header alone.
    at += Math.max(PKT_LENGTH_BYTES, Number.parseInt(text, 16));
  }
  return at - sent;
}
