import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, openSync, closeSync, rmSync, writeFileSync, ftruncateSync, fsyncSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createServer as createTcpServer, connect, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { bindLibc } from "@devplat/base/libc";
import { FileSender } from "./file-sender.ts";
import { isResident } from "./resident.ts";

const MEGABYTE = 1024 * 1024;
const IDLE_MS = 10_000;
const POSIX_FADV_DONTNEED = 4;

/** A plain TCP connection to ourselves: the side that sends, and the side that receives. */
async function connection(): Promise<{ ours: Socket; client: Socket; end: () => void }> {
  const server = createTcpServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [ours] = (await once(server, "connection")) as [Socket];
  ours.on("error", () => undefined);
  client.on("error", () => undefined);
  return {
    ours,
    client,
    end: () => {
      ours.destroy();
      client.destroy();
      server.close();
    },
  };
}

async function received(client: Socket, length: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of client.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    parts.push(chunk);
    size += chunk.length;
    if (size >= length) break;
  }
  return Buffer.concat(parts);
}

describe("FileSender", () => {
  const folder = mkdtempSync(join(tmpdir(), "file-sender-"));
  const path = join(folder, "content");
  const content = randomBytes(9 * MEGABYTE + 17);
  let sender: FileSender;
  let fd: number;

  before(() => {
    writeFileSync(path, content);
    fd = openSync(path, "r+");
    fsyncSync(fd);
    sender = new FileSender();
  });
  after(async () => {
    await sender.close();
    closeSync(fd);
    rmSync(folder, { recursive: true, force: true });
  });

  it("sends exactly the range, and the connection is used again after it", async () => {
    const { ours, client, end } = await connection();
    try {
      for (const [offset, length] of [
        [0, content.length],
        [4097, 5 * MEGABYTE + 3],
        [content.length - 1, 1],
      ] as const) {
        assert.ok(sender.canSend(ours));
        const sending = sender.send(ours, { fd, offset, length }, IDLE_MS);
        const bytes = await received(client, length);
        assert.equal((await sending?.report)?.end, "sent");
        assert.equal(sending?.sent(), length);
        assert.ok(bytes.equals(content.subarray(offset, offset + length)));
      }
      ours.write("after it");
      assert.equal((await received(client, 8)).toString(), "after it");
    } finally {
      end();
    }
  });

  it("sends nothing of a file that the kernel would have to read from the disk", async () => {
    // The folder for temporary files may be in memory, where the kernel keeps everything.
    const disk = mkdtempSync("/var/tmp/file-sender-");
    const cold = join(disk, "cold");
    writeFileSync(cold, content);
    const { ours, client, end } = await connection();
    const file = openSync(cold, "r+");
    try {
      fsyncSync(file);
      const { posix_fadvise: advise } = bindLibc({
        posix_fadvise: { arguments: ["int32", "int64", "int64", "int32"], return: "int32" },
      });
      // The kernel keeps pages that it is still busy with.
      for (let tries = 0; isResident(file, 0, content.length); tries++) {
        assert.ok(tries < 500, "the kernel keeps the file in memory");
        assert.equal(advise(file, 0n, 0n, POSIX_FADV_DONTNEED), 0);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      const sending = sender.send(ours, { fd: file, offset: 0, length: content.length }, IDLE_MS);
      assert.equal((await sending?.report)?.end, "cold");
      assert.equal(sending?.sent(), 0);
      ours.end("by another way");
      assert.equal((await received(client, 14)).toString(), "by another way");
    } finally {
      closeSync(file);
      rmSync(disk, { recursive: true });
      end();
    }
  });

  it("ends when the file becomes shorter, or the client leaves or takes nothing", async () => {
    const short = join(folder, "short");
    writeFileSync(short, content);
    const file = openSync(short, "r+");
    const stands = await Promise.all([connection(), connection(), connection()]);
    const [shorter, leaving, stuck] = stands;
    try {
      const range = { fd, offset: 0, length: content.length };
      const cut = sender.send(shorter.ours, { ...range, fd: file }, IDLE_MS)!;
      const left = sender.send(leaving.ours, range, IDLE_MS)!;
      const idle = sender.send(stuck.ours, range, 300)!;
      // Their clients read nothing, so a part of each is sent.
      while (Math.min(cut.sent(), left.sent(), idle.sent()) === 0) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      ftruncateSync(file, MEGABYTE);
      shorter.client.resume();
      leaving.client.destroy();
      assert.equal((await cut.report).end, "failed");
      assert.equal((await left.report).end, "gone");
      assert.equal((await idle.report).end, "idle");
      assert.ok(idle.sent() < content.length);
    } finally {
      closeSync(file);
      for (const { end } of stands) end();
    }
  });

  it("a slow client delays no other", async () => {
    const slow = await connection();
    const quick = await connection();
    try {
      const range = { fd, offset: 0, length: content.length };
      const first = sender.send(slow.ours, range, IDLE_MS)!;
      const second = sender.send(quick.ours, range, IDLE_MS)!;
      assert.ok((await received(quick.client, content.length)).equals(content));
      assert.equal((await second.report).end, "sent");
      assert.ok(first.sent() < content.length);
      assert.ok((await received(slow.client, content.length)).equals(content));
      assert.equal((await first.report).end, "sent");
    } finally {
      slow.end();
      quick.end();
    }
  });

  it("close ends what is being sent", async () => {
    const own = new FileSender();
    const { ours, end } = await connection();
    try {
      const sending = own.send(ours, { fd, offset: 0, length: content.length }, IDLE_MS)!;
      await own.close();
      assert.equal((await sending.report).end, "gone");
      assert.equal(own.canSend(ours), false);
    } finally {
      end();
    }
  });

  it("a process that exits while a client takes nothing ends immediately", async () => {
    const program = `
      import { FileSender } from ${JSON.stringify(new URL("file-sender.ts", import.meta.url).href)};
      import { createServer, connect } from "node:net";
      import { openSync } from "node:fs";
      const server = createServer((socket) => {
        const sending = new FileSender().send(socket, { fd: openSync(${JSON.stringify(path)}, "r"), offset: 0, length: ${content.length} }, 60000);
        const timer = setInterval(() => { if (sending.sent() > 0) { clearInterval(timer); process.exit(7); } }, 5);
      }).listen(0, "127.0.0.1", () => connect(server.address().port, "127.0.0.1").pause());`;
    const file = join(folder, "exits.mjs");
    writeFileSync(file, program);
    const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", file], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    const timeout = setTimeout(() => child.kill("SIGKILL"), 20_000);
    const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
    clearTimeout(timeout);
    assert.deepEqual([code, signal], [7, null]);
  });
});

describe("downloads that are broken off", () => {
  /** Two contents that never agree in a byte. */
  const sizes = { a: 3 * MEGABYTE, b: 2 * MEGABYTE };
  const folder = mkdtempSync(join(tmpdir(), "file-sender-"));
  const sender = new FileSender();
  let server: Server;

  before(async () => {
    for (const [name, size] of Object.entries(sizes)) writeFileSync(join(folder, name), name.repeat(size));
    server = createServer((request, response) => {
      const name = request.url === "/a" ? "a" : "b";
      const length = sizes[name];
      // Opened and closed for each request, so that its number is given to the next one.
      const fd = openSync(join(folder, name), "r");
      response.writeHead(200, { "content-length": length });
      response.flushHeaders();
      const sending = sender.canSend(response.socket)
        ? sender.send(response.socket, { fd, offset: 0, length }, IDLE_MS)
        : undefined;
      closeSync(fd);
      assert.ok(sending, "the file cannot be sent");
      void sending.report.then(({ end }) => (end === "sent" ? response.end() : response.destroy()));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  after(async () => {
    server.closeAllConnections();
    server.close();
    await sender.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it("no byte of one file reaches a client of the other", async () => {
    const count = Number(process.env["SEND_FILE_DOWNLOADS"] ?? 400);
    const { port } = server.address() as AddressInfo;
    let whole = 0;
    let broken = 0;
    const download = async (name: "a" | "b", stopAt: number): Promise<void> => {
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
        assert.ok(
          body.equals(Buffer.alloc(body.length, name)),
          `a byte of another file near ${size} of ${name}`,
        );
        if (size >= stopAt) break;
      }
      if (size === sizes[name]) whole++;
      else {
        broken++;
        assert.ok(size >= stopAt, `${name} broke off after ${size} bytes`);
      }
    };
    const workers = Array.from({ length: 6 }, async (_, worker) => {
      for (let i = worker; i < count; i += 6) {
        const name = i % 2 === 0 ? "a" : "b";
        // Every eighth is read to its end.
        await download(name, i % 8 === 0 ? sizes[name] : (i * 7919) % sizes[name]);
      }
    });
    await Promise.all(workers);
    assert.ok(whole >= count / 8 && broken > count / 2, `${whole} whole, ${broken} broken off`);
  });
});
