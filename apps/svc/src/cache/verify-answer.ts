import type { ObjectFormat } from "@devplat/git-protocol";
import { AnswerCheck } from "./answer-check.ts";
import { readAt } from "./file-io.ts";
import type { OpenResponse } from "./response-files.ts";

/** Bytes read at once. */
const VERIFY_CHUNK_BYTES = 512 * 1024;

/** Reads a file of an earlier process through once: the disk may have changed it since it was checked. */
export async function isSound(file: OpenResponse, format: ObjectFormat): Promise<boolean> {
  const buffer = Buffer.allocUnsafe(Math.min(VERIFY_CHUNK_BYTES, Math.max(1, file.size)));
  const check = new AnswerCheck(format);
  for (let position = 0; position < file.size;) {
    const count = await readAt(file.fd, buffer, buffer.length, position);
    if (count === 0) return false;
    // The check keeps views of lines that go over a chunk's end; a copy keeps them as they were.
    check.push(Buffer.from(buffer.subarray(0, count)));
    position += count;
  }
  return check.verdict() === undefined;
}
