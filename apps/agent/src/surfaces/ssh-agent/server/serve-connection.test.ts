import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import { silentLogger, type Logger } from "@devplat/base";
import { MAX_AGENT_MESSAGE_BYTES, encodeAgentFrame } from "@devplat/ssh-protocol";
import { RawClient } from "./raw-client.test-kit.ts";
import { serveConnection, type MessageHandler } from "./serve-connection.ts";
import { keysFolder } from "./ssh-agent.test-kit.ts";

/** Serves connections until the action has ended. */
async function withServer(
  { handler = {}, logger = silentLogger }: { handler?: Partial<MessageHandler>; logger?: Logger },
  action: (path: string) => Promise<void>,
): Promise<void> {
  await using folder = await keysFolder();
  const path = join(folder.path, "s");
  const full: MessageHandler = {
    isForwarded: false,
    answer: async () => ({ type: "success" }),
    close: () => undefined,
    ...handler,
  };
  const server = createServer((socket) => void serveConnection(socket, full, logger)).listen(path);
  await once(server, "listening");
  try {
    await action(path);
  } finally {
    server.close();
  }
}

describe("serveConnection", () => {
  it("a handler that fails ends its connection, and leaves the process running", async () => {
    const logged: unknown[] = [];
    let closed = 0;
    const handler: Partial<MessageHandler> = {
      answer: async (message) => {
        if (message[0] === 1) throw new Error("a fault of the program");
        return { type: "success" };
      },
      close: () => void (closed += 1),
    };
    const logger = { ...silentLogger, error: (fields: object) => void logged.push(fields) };
    await withServer({ handler, logger }, async (path) => {
      using good = await RawClient.connect(path);
      using bad = await RawClient.connect(path);
      bad.sendMessage(Buffer.of(1));
      assert.equal(await bad.next(), undefined);
      assert.equal(logged.length, 1);
      assert.equal(closed, 1);
      good.sendMessage(Buffer.of(2));
      assert.deepEqual(await good.next(), { type: "success" });
    });
  });

  it("a message that is not complete in time ends its connection", async (context) => {
    await withServer({}, async (path) => {
      context.mock.timers.enable({ apis: ["setTimeout"] });
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
    });
  });

  it("a connection answers any number of messages", async () => {
    await withServer({}, async (path) => {
      using client = await RawClient.connect(path);
      // More than the limit of held bytes, counted by the length fields alone.
      const count = MAX_AGENT_MESSAGE_BYTES / 4 + 100;
      client.send(Buffer.concat(Array.from({ length: count }, () => encodeAgentFrame(Buffer.of(2)))));
      for (let each = 0; each < count; each++) assert.deepEqual(await client.next(), { type: "success" });
    });
  });
});
