import { createHash } from "node:crypto";
import { FLUSH_PKT, SIDE_BAND, encodePktLine, encodeSideBand } from "@devplat/git-protocol";

/** A stored response of a code host, and its pack. */
export interface FramedPack {
  readonly response: Buffer;
  readonly pack: Buffer;
  /** `pack-<checksum>` */
  readonly name: string;
}

/** @param content of the pack, before its checksum. @param lengths of the packets; the last one is repeated */
export function framedPack(content: Buffer, lengths: readonly number[] = [65_515]): FramedPack {
  const checksum = createHash("sha1").update(content).digest();
  const pack = Buffer.concat([content, checksum]);
  const packets: Buffer[] = [];
  for (let at = 0, index = 0; at < pack.length; index++) {
    const length = lengths[Math.min(index, lengths.length - 1)]!;
    packets.push(encodeSideBand(SIDE_BAND.pack, pack.subarray(at, at + length)));
    if (index % 5 === 2) packets.push(encodeSideBand(SIDE_BAND.progress, Buffer.from(`packet ${index}\r`)));
    // A keepalive packet.
    if (index % 7 === 3) packets.push(Buffer.from("0005\u0001"));
    at += length;
  }
  const before = [
    encodePktLine("shallow-info\n"),
    encodePktLine(`shallow ${"a".repeat(40)}\n`),
    Buffer.from("0001"),
  ];
  const response = Buffer.concat([...before, encodePktLine("packfile\n"), ...packets, FLUSH_PKT]);
  return { response, pack, name: `pack-${checksum.toString("hex")}` };
}
