import type { IncomingMessage } from "node:http";
import { constants, gunzipSync } from "node:zlib";

/** No command's first pkt-line is longer than a pkt-line can be (gitprotocol-common(5)): 65 520 bytes. */
const MAX_HEAD_BYTES = 65_520;

/** Command of a request, and the part of the body that was read to find it. */
export interface Head {
  readonly bytes: Buffer;
  /** `ls-refs`, `fetch`, …; `flush` for a body that begins with a flush-pkt; undefined for any other body. */
  readonly command: string | undefined;
}

/**
 * Reads just as much of a protocol-v2 request body as holds its first pkt-line (gitprotocol-v2(5)), gzip or not.
 * The rest stays in the request, paused.
 */
export function readCommand(request: IncomingMessage): Promise<Head> {
  const zipped = request.headers["content-encoding"] === "gzip";
  let bytes = Buffer.alloc(0);
  return new Promise((resolve) => {
    const done = (command: string | undefined): void => {
      request.pause();
      request.off("data", take).off("end", end).off("error", end).off("close", end);
      resolve({ bytes, command });
    };
    const take = (chunk: Buffer): void => {
      bytes = Buffer.concat([bytes, chunk]);
      const line = firstLine(zipped ? inflated(bytes) : bytes);
      if (line !== undefined || bytes.length >= MAX_HEAD_BYTES) done(commandOf(line));
    };
    const end = (): void => done(commandOf(firstLine(zipped ? inflated(bytes) : bytes)));
    request.on("data", take).on("end", end).on("error", end).on("close", end);
  });
}

function commandOf(line: string | undefined): string | undefined {
  if (line === "") return "flush";
  return line?.startsWith("command=") === true ? line.slice("command=".length).trimEnd() : undefined;
}

/** The first pkt-line's payload, `""` for a special packet; undefined while it is incomplete. */
function firstLine(bytes: Buffer): string | undefined {
  if (bytes.length < 4) return undefined;
  const length = Number.parseInt(bytes.toString("latin1", 0, 4), 16);
  if (Number.isNaN(length) || length < 4) return "";
  return bytes.length < length ? undefined : bytes.toString("latin1", 4, length);
}

/** As much as can be inflated of the beginning of a gzip stream; nothing when it is broken. */
function inflated(bytes: Buffer): Buffer {
  try {
    return gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: 2 ** 24 });
  } catch {
    return Buffer.alloc(0);
  }
}
