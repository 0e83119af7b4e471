import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  gitEnvironment,
  repositories,
  run,
  startCodeHost,
  startSvc,
  tempFolder,
  until,
  type CodeHost,
  type Finished,
  type Svc,
  type TempFolder,
} from "@devplat/testkit";

let codeHost: CodeHost;
let folder: TempFolder;

before(async () => {
  codeHost = await startCodeHost();
  folder = await tempFolder("svc-limits");
  await codeHost.addRepository("org", "r", {
    build: (dir) => repositories.bigBlobs(dir, { blobs: 1, bytes: 3 * 2 ** 20 }),
  });
});
after(async () => {
  await codeHost.stop();
  await folder.remove();
});

/** A connection with everything that came on it; a reset counts as an end. */
async function open(
  svc: Svc,
  localAddress = "127.0.0.1",
): Promise<{ socket: Socket; text: () => string; ended: Promise<unknown> }> {
  const socket = connect({ port: Number(new URL(svc.url).port), host: "127.0.0.1", localAddress });
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
  socket.on("error", () => undefined);
  // Not by `once`, which rejects for an error before it: a write to what the service closed fails so.
  const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  await once(socket, "connect");
  return { socket, text: () => text, ended };
}

const clone = (svc: Svc, name: string): Promise<Finished> =>
  run("git", ["clone", "-q", "--bare", `${svc.url}/org/r`, join(folder.path, name)], {
    env: gitEnvironment(),
  });

describe("slow and giant requests do no harm", () => {
  let svc: Svc;
  before(async () => {
    svc = await startSvc({ codeHost });
  });
  after(async () => {
    assert.equal(await svc.stop(), 0);
  });

  it("a head over 32 KiB is refused with 431 [svc 11.8]", async () => {
    const { socket, text, ended } = await open(svc);
    socket.write(`GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ${"x".repeat(40_000)}\r\n\r\n`);
    await ended;
    assert.match(text(), /^HTTP\/1\.1 431 /);
  });

  it("slow heads of a hundred clients are cut off after 20 s, and clones are served [svc 11.8]", async () => {
    const drips = await Promise.all(Array.from({ length: 100 }, async () => open(svc)));
    const startedAt = performance.now();
    const dripping = setInterval(() => {
      for (const { socket } of drips) if (socket.writable) socket.write("X-Drip: 1\r\n");
    }, 1000);
    for (const { socket } of drips) socket.write("GET /org/r/info/refs HTTP/1.1\r\nHost: localhost\r\n");
    try {
      const cloned = await clone(svc, "meanwhile");
      assert.equal(cloned.code, 0, cloned.stderr);
      await Promise.all(drips.map(async ({ ended }) => ended));
    } finally {
      clearInterval(dripping);
    }
    assert.ok(performance.now() - startedAt > 15_000, "they were cut off for being slow, not for coming");
    for (const { text } of drips) assert.match(text(), /^(?:HTTP\/1\.1 408 |$)/);
  });

  it("a refused request with an endless body is answered, and its connection closed", async () => {
    const { socket, text, ended } = await open(svc);
    socket.write(
      "POST /org/r/git-upload-pack/.. HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    const block = `${(65_536).toString(16)}\r\n${"x".repeat(65_536)}\r\n`;
    socket.write(block);
    // Node throws away what has arrived and is not read yet when a write finds the connection closed.
    await until(() => text() !== "", text);
    let sent = 0;
    const feed = (): void => {
      if (!socket.writable) return;
      if (socket.writableLength < 1 << 20) {
        socket.write(block);
        sent += block.length;
      }
      setImmediate(feed);
    };
    feed();
    await ended;
    assert.match(text(), /^HTTP\/1\.1 400 /);
    assert.ok(sent < 64 * 2 ** 20);
  });
});

it("server.max_connections: excess connections are closed, and earlier ones go on [svc 11.11]", async () => {
  const svc = await startSvc({ codeHost, env: { SVC_SERVER_MAX_CONNECTIONS: "20" } });
  const all = await Promise.all(
    Array.from({ length: 30 }, async (_, index) => open(svc, `127.0.0.${(index % 2) + 1}`)),
  );
  await Promise.all(all.slice(20).map(async ({ ended }) => ended));
  const rest = all.filter(({ socket }) => !socket.destroyed);
  for (const { socket } of rest) {
    socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  }
  await Promise.all(rest.map(async ({ ended }) => ended));
  const kept = rest.filter(({ text }) => text() !== "");
  // The question whether it is ready may hold a connection, too.
  assert.ok(kept.length === 20 || kept.length === 19, `${kept.length} were kept`);
  for (const { text } of kept) assert.match(text(), /^HTTP\/1\.1 200 [^]*ok\n$/);
  assert.equal(await svc.stop(), 0);
});

it("server.max_connections: one address gets three quarters, and others are served [svc 11.9]", async () => {
  const svc = await startSvc({ codeHost, env: { SVC_SERVER_MAX_CONNECTIONS: "20" } });
  const held = await Promise.all(Array.from({ length: 30 }, async () => open(svc, "127.0.0.2")));
  let closed = 0;
  const { promise: enough, resolve } = Promise.withResolvers<void>();
  for (const { ended } of held) void ended.then(() => (++closed === 15 ? resolve() : undefined));
  await enough;
  const other = await open(svc);
  other.socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  await other.ended;
  assert.match(other.text(), /^HTTP\/1\.1 200 /);
  assert.equal(held.filter(({ socket }) => !socket.destroyed).length, 15);
  for (const { socket } of held) socket.destroy();
  assert.equal(await svc.stop(), 0);
});
