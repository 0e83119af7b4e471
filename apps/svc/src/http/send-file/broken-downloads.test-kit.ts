import assert from "node:assert/strict";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FileRange } from "./direct-send.ts";

const MEGABYTE = 1024 * 1024;
/** Two contents that never agree in a byte. */
const SIZES = { a: 3 * MEGABYTE, b: 2 * MEGABYTE };

/** Begins to send a file after the head of a response. */
export type SendFile = (
  response: ServerResponse,
  range: FileRange,
) => Promise<{
  /** Whether the file must stay open until it is sent. */
  readonly isOpen: boolean;
  /** Whether it was sent whole; false or a rejection: the client is gone. */
  readonly whole: Promise<boolean>;
}>;

/**
 * Downloads two files over and over, on few descriptors, and breaks most downloads off. `SEND_FILE_DOWNLOADS` in the environment
 * sets their number.
 *
 * @throws AssertionError when a byte of one file reaches a client of the other
 */
export async function breakOffDownloads(send: SendFile): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "broken-downloads-"));
  for (const [name, size] of Object.entries(SIZES)) writeFileSync(join(folder, name), name.repeat(size));
  const faults: unknown[] = [];
  const server = createServer((request, response) => {
    const name = request.url === "/a" ? "a" : "b";
    const length = SIZES[name];
    // Opened and closed for each request, so that its number is given to the next one.
    const fd = openSync(join(folder, name), "r");
    response.writeHead(200, { "content-length": length });
    const answer = async (): Promise<void> => {
      const { isOpen, whole } = await send(response, { fd, offset: 0, length });
      if (!isOpen) closeSync(fd);
      const isWhole = await whole.catch(() => false);
      if (isOpen) closeSync(fd);
      if (isWhole) response.end();
      else response.destroy();
    };
    answer().catch((error: unknown) => {
      faults.push(error);
      response.destroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  try {
    const count = Number(process.env["SEND_FILE_DOWNLOADS"] ?? 400);
    let whole = 0;
    let broken = 0;
    const workers = Array.from({ length: 6 }, async (_, worker) => {
      for (let i = worker; i < count; i += 6) {
        const name = i % 2 === 0 ? "a" : "b";
        // Every eighth is read to its end.
        const stopAt = i % 8 === 0 ? SIZES[name] : (i * 7919) % SIZES[name];
        const size = await download(port, name, stopAt);
        if (size === SIZES[name]) whole++;
        else {
          broken++;
          assert.ok(size >= stopAt, `${name} broke off after ${size} bytes`);
        }
      }
    });
    await Promise.all(workers);
    assert.deepEqual(faults, []);
    assert.ok(whole >= count / 8 && broken > count / 2, `${whole} whole, ${broken} broken off`);
  } finally {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @returns the bytes that came before the client left */
async function download(port: number, name: "a" | "b", stopAt: number): Promise<number> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(`GET /${name} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
  let headEnd = -1;
  let size = 0;
  let head = "";
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    let body = chunk;
    if (headEnd < 0) {
      head += chunk.toString("latin1");
      headEnd = head.indexOf("\r\n\r\n");
      if (headEnd < 0) continue;
      body = Buffer.from(head.slice(headEnd + 4), "latin1");
    }
    size += body.length;
    assert.ok(body.equals(Buffer.alloc(body.length, name)), `a byte of another file near ${size} of ${name}`);
    if (size >= stopAt) break;
  }
  return size;
}
