import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, openSync, closeSync, rmSync, writeFileSync, ftruncateSync, fsyncSync } from "node:fs";
import { createServer as createTcpServer, connect, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { breakOffDownloads } from "./broken-downloads.test-kit.ts";
import { ColdFile } from "./cold-file.test-kit.ts";
import { FileSender } from "./file-sender.ts";

const MEGABYTE = 1024 * 1024;
const IDLE_MS = 10_000;

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
    using file = new ColdFile(content);
    const { ours, client, end } = await connection();
    try {
      await file.drop(0, content.length);
      const range = { fd: file.fd, offset: 0, length: content.length };
      const sending = sender.send(ours, range, IDLE_MS);
      assert.equal((await sending?.report)?.end, "cold");
      assert.equal(sending?.sent(), 0);
      ours.end("by another way");
      assert.equal((await received(client, 14)).toString(), "by another way");
    } finally {
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
  const sender = new FileSender();
  after(() => sender.close());

  it("no byte of one file reaches a client of the other", async () => {
    await breakOffDownloads(async (response, range) => {
      response.flushHeaders();
      const sending = sender.canSend(response.socket)
        ? sender.send(response.socket, range, IDLE_MS)
        : undefined;
      assert.ok(sending, "the file cannot be sent");
      return { isOpen: false, whole: sending.report.then(({ end }) => end === "sent") };
    });
  });
});

describe("DirectSend", () => {
  const folder = mkdtempSync(join(tmpdir(), "direct-send-"));
  let files = 0;
  const content = randomBytes(9 * MEGABYTE + 17);
  const sender = new FileSender();
  after(async () => {
    await sender.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** A range of a file of its own, and a connection. */
  async function stand(offset: number, length: number) {
    const path = join(folder, String(files++));
    writeFileSync(path, content);
    const fd = openSync(path, "r+");
    const { ours, client, end } = await connection();
    const direct = sender.direct(ours, { fd, offset, length });
    assert.ok(direct);
    return {
      ours,
      client,
      fd,
      direct,
      end: () => {
        closeSync(fd);
        end();
      },
    };
  }

  /** Sends to the end, as a caller does. @returns the last state */
  async function sendAll({ ours, direct }: Awaited<ReturnType<typeof stand>>): Promise<string> {
    for (;;) {
      const state = direct.step();
      if (state !== "full") return state;
      const bytes = direct.bridge();
      assert.ok(bytes);
      const error = await new Promise((taken) => ours.write(bytes, taken));
      if (error) return "gone";
    }
  }

  it("sends exactly the range to a client that reads late, and counts what Node wrote", async () => {
    for (const [offset, length] of [
      [4097, 9 * MEGABYTE - 5000],
      [content.length - 1, 1],
    ] as const) {
      const each = await stand(offset, length);
      const { ours, client, direct, end } = each;
      try {
        const sending = sendAll(each);
        const bytes = await received(client, length);
        assert.equal(await sending, "sent");
        assert.ok(bytes.equals(content.subarray(offset, offset + length)));
        assert.equal(direct.sent, length);
        assert.equal(direct.fileBytes, length - ours.bytesWritten);
        assert.ok(direct.isStillResident());
        ours.write("after it");
        assert.equal((await received(client, 8)).toString(), "after it");
      } finally {
        end();
      }
    }
  });

  it("fails when the file becomes shorter, and ends when the client leaves", async () => {
    const short = await stand(0, content.length);
    const left = await stand(0, content.length);
    try {
      assert.equal(short.direct.step(), "full");
      ftruncateSync(short.fd, MEGABYTE);
      // The pages behind the new end are gone, so the rest counts as not in memory.
      assert.equal(short.direct.step(), "cold");
      assert.equal(short.direct.bridge(), undefined);
      assert.ok(!short.direct.isStillResident());
      assert.equal(left.direct.step(), "full");
      left.client.destroy();
      await new Promise((closed) => left.ours.once("close", closed));
      const { sent } = left.direct;
      assert.equal(left.direct.step(), "gone");
      assert.equal(left.direct.sent, sent);
    } finally {
      short.end();
      left.end();
    }
  });

  it("is for short ranges, and not for all of many", async () => {
    const own = new FileSender();
    const { ours, end } = await connection();
    try {
      assert.equal(own.direct(ours, { fd: 0, offset: 0, length: 17 * MEGABYTE }), undefined);
      const range = { fd: 0, offset: 0, length: 8 * MEGABYTE };
      const taken = Array.from({ length: 100 }, () => own.direct(ours, range)).filter(Boolean);
      assert.ok(taken.length >= 4 && taken.length < 50, String(taken.length));
    } finally {
      end();
      await own.close();
    }
  });
});
