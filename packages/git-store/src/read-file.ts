import { closeSync, constants, fstatSync, openSync, readdirSync, readSync } from "node:fs";
import { GitStoreError, hasCode, isMissingFile } from "./errors.ts";

/** Maximum bytes of one readSync call on Linux (2^31 - 4096). */
const MAX_READ_BYTES = 0x7fff_f000;

/** Flags of open(2) to read a file. Without O_NONBLOCK to open a pipe waits for its writer, and stops the whole thread. */
export const READ_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;

/**
 * Opens a file for reading. The caller must close it.
 *
 * @throws {GitStoreError} `corrupt_repository`: there is something else, such as a folder or a pipe; system errors
 */
export function openFile(path: string): { readonly fd: number; readonly size: number } {
  const fd = openSync(path, READ_FLAGS);
  const facts = fstatSync(fd);
  if (facts.isFile()) return { fd, size: facts.size };
  closeSync(fd);
  throw new GitStoreError("corrupt_repository", `open ${path}: it is not a file`, { path });
}

/** Reads a complete file into memory that worker threads can share. */
export function readShared(path: string): Buffer {
  const { fd, size } = openFile(path);
  try {
    const bytes = Buffer.from(new SharedArrayBuffer(size));
    readExactly(fd, bytes, 0, path);
    return bytes;
  } finally {
    closeSync(fd);
  }
}

/**
 * Reads a complete file that is small in a sound repository.
 *
 * @returns undefined if there is no file
 * @throws {GitStoreError} `too_large`, `corrupt_repository`; system errors
 */
export function readSmallFile(path: string, mostBytes: number): Buffer | undefined {
  let file: ReturnType<typeof openFile>;
  try {
    file = openFile(path);
  } catch (error) {
    if (isMissingFile(error)) return undefined;
    throw error;
  }
  try {
    if (file.size > mostBytes) {
      throw new GitStoreError("too_large", `read ${path}: it has more than ${mostBytes} bytes`, { path });
    }
    const bytes = Buffer.allocUnsafe(file.size);
    readExactly(file.fd, bytes, 0, path);
    return bytes;
  } finally {
    closeSync(file.fd);
  }
}

/** Lists a folder. It has no entries if it does not exist. A file in its place is an error. */
export function readFolder(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
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
