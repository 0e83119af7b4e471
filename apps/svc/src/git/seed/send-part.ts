import type { FileHandle } from "node:fs/promises";
import type { FileSender } from "../../http/send-file/file-sender.ts";
import type { Late } from "../../late.ts";
import type { ClientSink } from "../client-sink.ts";

/** Bytes that are read at a time. */
const READ_BYTES = 256 * 1024;
/** Bytes that are sent with the head, so that the connection is free for sendfile(2). */
const FIRST_BYTES = 16 * 1024;

/** A part of a file with bytes before it. */
export interface FilePart {
  /** Bytes before the file. */
  readonly head: Buffer;
  /** Counts from the begin of these bytes. */
  readonly start: number;
  readonly end: number;
}

/**
 * Sends a part of a file: by sendfile(2) if the connection and the system can and the file is in memory, otherwise by reading
 * it. The client compares the file with its SHA-256, so the bytes are not looked at here.
 *
 * @param files sends files that the kernel has in memory
 * @param counted called at the end, also after a failure, with the bytes that were sent
 * @throws GitError `client_gone`, a system error, an error if the file is shorter than the part
 */
export async function sendPart(
  sink: ClientSink,
  files: Late<FileSender>,
  file: FileHandle,
  { head, start, end }: FilePart,
  counted: (bytes: number) => void,
): Promise<void> {
  let at = start;
  const buffer = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, end - start));
  const readAndSend = async (limit: number): Promise<number> => {
    const offset = at - head.length;
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, limit, end - at), offset);
    if (bytesRead === 0) throw new Error("a file of a seed became shorter while it was sent");
    await sink.writeThrough(buffer.subarray(0, bytesRead));
    return bytesRead;
  };
  try {
    if (at < head.length) {
      const bytes = head.subarray(at, end);
      await sink.writeThrough(bytes);
      at += bytes.length;
    }
    if (at < end) at += await readAndSend(FIRST_BYTES);
    // Where it cannot be loaded, because Node has no way to call the system, all is read.
    const sender = await files.get().catch(() => undefined);
    if (sender !== undefined && at < end && sink.canSendFile(sender)) {
      const sent = await sink.sendFile(sender, { fd: file.fd, offset: at - head.length, length: end - at });
      at += sent.sent;
    }
    while (at < end) at += await readAndSend(READ_BYTES);
    sink.end();
  } finally {
    counted(at - start);
  }
}
