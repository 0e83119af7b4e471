import { readAllAt, type ReadBytes } from "../file-io.ts";
import type { PacketLayout } from "./packet-layout.ts";

/** Reads a framed response whose pack is in an open file. @param fd of the pack */
export function framedReader(layout: PacketLayout, fd: number): ReadBytes {
  return async (target, position) => {
    const { offset, targets } = layout.fill(target, position);
    const length = targets.reduce((sum, { length: bytes }) => sum + bytes, 0);
    // A shorter pack is another pack: nothing of it is of use.
    return (await readAllAt(fd, targets, offset)) === length ? target.length : 0;
  };
}
