import { read, writev } from "node:fs";

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
