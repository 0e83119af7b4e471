import assert from "node:assert/strict";
import { once } from "node:events";
import { createConnection, createServer } from "node:net";
import { basename, join } from "node:path";
import { describe, it } from "node:test";
import { tempFolder } from "@devplat/testkit";
import { socketOwner } from "./socket-owner.ts";

describe("socketOwner", () => {
  it("names the process that listens, with one connection", async () => {
    const folder = await tempFolder("socket-owner");
    const path = join(folder.path, "s");
    let connections = 0;
    const marked = Promise.withResolvers<number>();
    const server = createServer((connection) => {
      connections++;
      connection.once("data", () => marked.resolve(connections));
    });
    try {
      assert.equal(await socketOwner(path), undefined);
      server.listen(path);
      await once(server, "listening");
      const text = `${basename(process.execPath)}, PID ${process.pid}`;
      assert.deepEqual(await socketOwner(path), { pid: process.pid, text });
      // Connections are accepted in their order.
      const last = createConnection(path).end("last");
      assert.equal(await marked.promise, 2);
      last.destroy();
    } finally {
      server.close();
      await folder.remove();
    }
  });
});
