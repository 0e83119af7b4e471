import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import { silentLogger } from "@devplat/base";
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
});
