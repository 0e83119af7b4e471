import { read, readv, writev, type Stats } from "node:fs";

/** Tells a file from others that had or get its path. */
export function fileIdentity(path: string, { ino, birthtimeMs, size }: Stats): string {
  return `${path}\0${ino}\0${birthtimeMs}\0${size}`;
}

/**
 * Reads at a position. The callback form: `FileHandle` costs several times the CPU per call, and these two calls are
 * the whole work of serving a stored response.
 *
 * @returns the number of bytes read; 0 at the end of the file
 */
export function readAt(fd: number, buffer: Buffer, length: number, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    read(fd, buffer, 0, length, position, (error, bytesRead) => (error ? reject(error) : resolve(bytesRead)));
  });
}

/** Reads at a position until the target is full or the content ends. @returns the number of bytes read */
export type ReadBytes = (target: Buffer, position: number) => Promise<number>;

/** Reads an open file. */
export function fileReader(fd: number): ReadBytes {
  return async (target, position) => readAllAt(fd, [target], position);
}

/** Maximum buffers of one call to the system (IOV_MAX is 1024 on Linux). */
const MAX_VECTOR = 1024;

/** Reads into one buffer after the other. @returns the number of bytes read; fewer than their lengths at the end of the file */
export async function readAllAt(fd: number, buffers: readonly Buffer[], position: number): Promise<number> {
  let rest: readonly Buffer[] = buffers;
  let at = position;
  while (rest.length > 0) {
    const count = await readvAt(fd, rest.slice(0, MAX_VECTOR), at);
    if (count === 0) break;
    at += count;
    rest = dropBytes(rest, count);
  }
  return at - position;
}

function readvAt(fd: number, buffers: Buffer[], position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    readv(fd, buffers, position, (error, count) => (error ? reject(error) : resolve(count)));
  });
}

/** Writes all buffers at a position. */
export async function writeAllAt(fd: number, buffers: readonly Buffer[], position: number): Promise<void> {
  let rest: readonly Buffer[] = buffers;
  let at = position;
  while (rest.length > 0) {
    const written = await writevAt(fd, rest, at);
    at += written;
    rest = dropBytes(rest, written);
  }
}

function writevAt(fd: number, buffers: readonly Buffer[], position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    writev(fd, [...buffers], position, (error, written) => (error ? reject(error) : resolve(written)));
  });
}

function dropBytes(buffers: readonly Buffer[], count: number): readonly Buffer[] {
  let left = count;
  for (const [index, buffer] of buffers.entries()) {
    if (left < buffer.length) return [buffer.subarray(left), ...buffers.slice(index + 1)];
    left -= buffer.length;
  }
  return [];
}
