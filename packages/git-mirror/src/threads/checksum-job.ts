import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import type { ObjectFormat } from "@devplat/git-protocol";
import { READ_FLAGS, oidBytes } from "@devplat/git-store";

/** Bytes of one read. */
const READ_BYTES = 1024 * 1024;

/** Compares packs that an earlier process wrote with their checksums. */
export interface ChecksumJob {
  readonly kind: "checksum";
  readonly format: ObjectFormat;
  /** Paths of `.pack` files. */
  readonly packs: readonly string[];
}

/** @throws an error without a code if a pack does not match */
export async function compareChecksums({ packs, format }: ChecksumJob): Promise<void> {
  for (const path of packs) {
    if (!(await matchesChecksum(path, format)))
      throw new Error("a stored pack does not match its checksum; fetch it again");
  }
}

/** Whether the hash at the end of a file is the hash of all bytes before it. */
export async function matchesChecksum(path: string, format: ObjectFormat): Promise<boolean> {
  // A pipe without a writer ends immediately.
  const handle = await open(path, READ_FLAGS);
  try {
    const hash = createHash(format);
    const trailer = Buffer.alloc(oidBytes(format));
    const end = (await handle.stat()).size - trailer.length;
    if (end < 0) return false;
    const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
    for (let at = 0; at < end;) {
      const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, end - at), at);
      if (bytesRead === 0) break;
      hash.update(buffer.subarray(0, bytesRead));
      at += bytesRead;
    }
    await handle.read(trailer, 0, trailer.length, end);
    return hash.digest().equals(trailer);
  } finally {
    await handle.close();
  }
}
