import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { tempFolder, type TempFolder } from "@devplat/testkit";
import { MemoryRemotes, remoteView } from "../forwards/memory-remotes.test-kit.ts";
import { startTestServer, type TestServer } from "../web/server.test-kit.ts";
import { DaemonClient } from "./daemon-client.ts";

const RETRY = "/api/v1/ssh/remotes/build/retry";

describe("the client of the running daemon", () => {
  let folder: TempFolder;
  let runtimeFolder: string;
  let server: TestServer;
  const remotes = new MemoryRemotes([remoteView("build")]);
  before(async () => {
    folder = await tempFolder("daemon-client");
    runtimeFolder = join(folder.path, "daemon");
    await mkdir(runtimeFolder, { mode: 0o700 });
    server = await startTestServer({ remotes, runtimeFolder });
  });
  after(async () => {
    await server.stop();
    await folder.remove();
  });

  it("uses the web port where no socket answers", async () => {
    const client = new DaemonClient(runtimeFolder, join(folder.path, "absent.sock"));
    assert.equal((await client.change(RETRY))?.status, 202);
    assert.deepEqual(remotes.calls, [["retry", "build"]]);
    remotes.calls.length = 0;
  });

  it("sends a change once, also if the connection ends without a response", async () => {
    const sent: string[] = [];
    const socket = createServer((request, response) => {
      sent.push(`${request.method} ${request.url}`);
      // It may have done what was asked.
      if (request.method === "POST") request.socket.destroy();
      else response.end('{"token":"t"}');
    });
    const path = join(folder.path, "api.sock");
    socket.listen(path);
    await once(socket, "listening");
    try {
      assert.equal(await new DaemonClient(runtimeFolder, path).change(RETRY), undefined);
      assert.deepEqual(sent, ["GET /api/v1/csrf", `POST ${RETRY}`]);
      assert.deepEqual(remotes.calls, [], "nothing was sent to the web port");
    } finally {
      socket.close();
    }
  });
});
