import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { GitStoreError } from "./errors.ts";

/** Maximum bytes of one readSync call on Linux (2^31 - 4096). */
const MAX_READ_BYTES = 0x7fff_f000;

/** Reads a complete file into memory that worker threads can share. */
export function readShared(path: string): Buffer {
  const fd = openSync(path, "r");
  try {
    const size = fstatSync(fd).size;
    const bytes = Buffer.from(new SharedArrayBuffer(size));
    readExactly(fd, bytes, 0, path);
    return bytes;
  } finally {
    closeSync(fd);
  }
}

/** Fills `target` from `position` on. @throws {GitStoreError} `truncated` */
export function readExactly(fd: number, target: Uint8Array, position: number, path: string): void {
  let done = 0;
  while (done < target.length) {
    const count = readSync(fd, target, done, Math.min(target.length - done, MAX_READ_BYTES), position + done);
    if (count === 0) {
      throw new GitStoreError("truncated", `read ${path}: it ends at byte ${position + done}`, { path });
    }
    done += count;
  }
}
