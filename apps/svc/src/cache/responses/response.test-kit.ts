import { createHash } from "node:crypto";
import { SIDE_BAND, encodeFetchResponse, encodeSideBand } from "@devplat/git-protocol";

/** A whole response with a sound pack of that many bytes of content. */
export function answerOf(bytes: number): Buffer {
  const head = Buffer.from("PACK\0\0\0\u0002\0\0\0\u0001", "latin1");
  const content = Buffer.concat([head, Buffer.alloc(bytes, "x")]);
  const pack = Buffer.concat([content, createHash("sha1").update(content).digest()]);
  return encodeFetchResponse([{ name: "packfile", packets: encodeSideBand(SIDE_BAND.pack, pack) }]);
}
