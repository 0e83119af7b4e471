import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import { silentLogger } from "@devplat/base";
import { MAX_AGENT_MESSAGE_BYTES, encodeAgentFrame } from "@devplat/ssh-protocol";
import { RawClient } from "./raw-client.test-kit.ts";
import { serveConnection, type MessageHandler } from "./serve-connection.ts";
import { keysFolder } from "./ssh-agent.test-kit.ts";

describe("serveConnection", () => {
  it("a handler that fails ends its connection, and leaves the process running", async () => {
    await using folder = await keysFolder();
    const path = join(folder.path, "s");
    const logged: unknown[] = [];
    let closed = 0;
    const handler: MessageHandler = {
      isForwarded: false,
      answer: async (message) => {
        if (message[0] === 1) throw new Error("a fault of the program");
        return { type: "success" };
      },
      close: () => void (closed += 1),
    };
    const logger = { ...silentLogger, error: (fields: object) => void logged.push(fields) };
    const server = createServer((socket) => serveConnection(socket, handler, logger)).listen(path);
    await once(server, "listening");
    try {
      using good = await RawClient.connect(path);
      using bad = await RawClient.connect(path);
      bad.sendMessage(Buffer.of(1));
      assert.equal(await bad.next(), undefined);
      assert.equal(logged.length, 1);
      assert.equal(closed, 1);
      good.sendMessage(Buffer.of(2));
      assert.deepEqual(await good.next(), { type: "success" });
    } finally {
      server.close();
    }
  });

  it("a message that is not complete in time ends its connection", async (context) => {
    await using folder = await keysFolder();
    const path = join(folder.path, "s");
    const handler: MessageHandler = {
      isForwarded: false,
      answer: async () => ({ type: "success" }),
      close: () => undefined,
    };
    const server = createServer((socket) => void serveConnection(socket, handler, silentLogger)).listen(path);
    await once(server, "listening");
    context.mock.timers.enable({ apis: ["setTimeout"] });
    try {
      using idle = await RawClient.connect(path);
      using slow = await RawClient.connect(path);
      const [message, half] = [encodeAgentFrame(Buffer.of(2)), Buffer.of(0, 0, 0, 9)];
      idle.send(message);
      slow.send(Buffer.concat([message, half]));
      for (const client of [idle, slow]) assert.deepEqual(await client.next(), { type: "success" });
      context.mock.timers.tick(9_999);
      // A complete message has its own time.
      slow.send(Buffer.concat([Buffer.alloc(9, 2), half, message.subarray(0, 1)]));
      assert.deepEqual(await slow.next(), { type: "success" });
      context.mock.timers.tick(9_999);
      assert.equal(slow.isClosed, false);
      context.mock.timers.tick(1);
      assert.equal(await slow.next(), undefined);
      idle.send(message);
      assert.deepEqual(await idle.next(), { type: "success" });
    } finally {
      server.close();
    }
  });

  it("a connection answers any number of messages", async () => {
    await using folder = await keysFolder();
    const path = join(folder.path, "s");
    const handler: MessageHandler = {
      isForwarded: false,
      answer: async () => ({ type: "success" }),
      close: () => undefined,
    };
    const server = createServer((socket) => void serveConnection(socket, handler, silentLogger)).listen(path);
    await once(server, "listening");
    try {
      using client = await RawClient.connect(path);
      // More than the limit of held bytes, counted by the length fields alone.
      const count = MAX_AGENT_MESSAGE_BYTES / 4 + 100;
      client.send(Buffer.concat(Array.from({ length: count }, () => encodeAgentFrame(Buffer.of(2)))));
      for (let each = 0; each < count; each++) assert.deepEqual(await client.next(), { type: "success" });
    } finally {
      server.close();
    }
  });
});
