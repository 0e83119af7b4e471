import assert from "node:assert/strict";
import { createServer } from "node:net";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { activatedSockets, descriptorPath } from "./activation.ts";

describe("activatedSockets", () => {
  const table: [string, NodeJS.ProcessEnv, Record<string, number>][] = [
    ["nothing handed over", {}, {}],
    ["meant for another process", { LISTEN_PID: "8", LISTEN_FDS: "1" }, {}],
    ["no number", { LISTEN_PID: "7", LISTEN_FDS: "x" }, {}],
    ["more than a service has", { LISTEN_PID: "7", LISTEN_FDS: "100" }, {}],
    ["none", { LISTEN_PID: "7", LISTEN_FDS: "0" }, {}],
    [
      "without names the first is the API's, the second the peers'",
      { LISTEN_PID: "7", LISTEN_FDS: "2" },
      { api: 3, peer: 4 },
    ],
    [
      "systemd's default names say nothing",
      { LISTEN_PID: "7", LISTEN_FDS: "1", LISTEN_FDNAMES: "daemon.socket" },
      { api: 3 },
    ],
    [
      "without names the third is the SSH agent's",
      { LISTEN_PID: "7", LISTEN_FDS: "3" },
      { api: 3, peer: 4, agent: 5 },
    ],
    ["the SSH agent's name", { LISTEN_PID: "7", LISTEN_FDS: "1", LISTEN_FDNAMES: "agent" }, { agent: 3 }],
    ["names count", { LISTEN_PID: "7", LISTEN_FDS: "2", LISTEN_FDNAMES: "peer:api" }, { peer: 3, api: 4 }],
    [
      "a socket of another name is none of ours",
      { LISTEN_PID: "7", LISTEN_FDS: "3", LISTEN_FDNAMES: "x:peer:api" },
      { peer: 4, api: 5 },
    ],
    [
      "a name given twice counts once",
      { LISTEN_PID: "7", LISTEN_FDS: "2", LISTEN_FDNAMES: "api:api" },
      { api: 3 },
    ],
  ];
  for (const [name, environment, expected] of table) {
    it(name, () => assert.deepEqual(Object.fromEntries(activatedSockets(environment, 7)), expected));
  }
});

describe("descriptorPath", () => {
  it("finds the path of a listening socket, and nothing for another descriptor", async () => {
    const folder = await mkdtemp(join(tmpdir(), "agent activation "));
    const server = createServer().listen(join(folder, "s"));
    await once(server, "listening");
    // Node has no public name for it.
    const { fd } = (server as unknown as { _handle: { fd: number } })["_handle"];
    assert.equal(await descriptorPath(fd), join(folder, "s"));
    assert.equal(await descriptorPath(0), undefined);
    assert.equal(await descriptorPath(1_000_000), undefined);
    server.close();
    await rm(folder, { recursive: true });
  });
});
